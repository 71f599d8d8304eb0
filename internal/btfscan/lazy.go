package btfscan

import "sync"

// lazy is a value that is made once, at first use.
type lazy[T any] struct {
	once sync.Once
	v    T
}

func (l *lazy[T]) get(make func() T) T {
	l.once.Do(func() { l.v = make() })
	return l.v
}
