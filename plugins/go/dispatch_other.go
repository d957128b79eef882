//go:build !(linux && amd64)

package systolltest

import "errors"

const (
	numbers      = 512
	wordsOfStack = 14
)

type block struct{}

func begin() (*block, error) {
	return nil, errors.New("system calls are counted on x86-64 Linux only")
}

func (b *block) end() *Counts { return &Counts{} }
