//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"time"
)

const (
	loopback    = "127.0.0.1:0"
	messageSize = 256
	netTimeout  = 30 * time.Second
)

// messages sends n messages there and back over a TCP connection, then n over
// a pair of UDP sockets.
func messages(n int) error {
	for _, send := range []func(func() bool) (int, error){overTCP, overUDP} {
		left := n
		if _, err := send(func() bool { left--; return left >= 0 }); err != nil {
			return err
		}
	}
	return nil
}

// overTCP sends messages over one connection while more says so, and returns
// how many came back.
func overTCP(more func() bool) (int, error) {
	l, err := net.Listen("tcp4", loopback)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	echoed := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(c, c)
			c.Close()
		}
		echoed <- err
	}()
	c, err := net.DialTimeout("tcp4", l.Addr().String(), netTimeout)
	if err != nil {
		return 0, err
	}
	n, err := pingPong(c, more)
	c.Close()
	if err == nil {
		err = <-echoed
	}
	return n, err
}

// overUDP is overTCP with datagrams. Loopback loses none while there is only
// one on its way.
func overUDP(more func() bool) (int, error) {
	server, err := net.ListenPacket("udp4", loopback)
	if err != nil {
		return 0, err
	}
	defer server.Close()
	go func() {
		b := make([]byte, messageSize)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(b[:n], from)
		}
	}()
	c, err := net.Dial("udp4", server.LocalAddr().String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return pingPong(c, more)
}

func pingPong(c net.Conn, more func() bool) (n int, err error) {
	b := make([]byte, messageSize)
	for ; more(); n++ {
		if err := c.SetDeadline(time.Now().Add(netTimeout)); err != nil {
			return n, err
		}
		if _, err := c.Write(b); err != nil {
			return n, fmt.Errorf("message %d: %w", n, err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return n, fmt.Errorf("answer to message %d: %w", n, err)
		}
	}
	return n, nil
}
