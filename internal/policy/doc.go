// Package policy has only tests: the rules of the code base that a program can
// check and a linter does not know. They read the source for all systems, not
// just the one they run on.
package policy
