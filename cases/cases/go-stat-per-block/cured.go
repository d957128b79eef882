// Reads a file by blocks.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func size(f *os.File) int64 {
	st, err := f.Stat()
	if err != nil {
		panic(err)
	}
	return st.Size()
}

func main() {
	n := 5000
	if len(os.Args) > 1 {
		n, _ = strconv.Atoi(os.Args[1])
	}
	f, err := os.CreateTemp("", "blocks")
	if err != nil {
		panic(err)
	}
	defer os.Remove(f.Name())
	f.Truncate(int64(n) * 4096)
	buf := make([]byte, 4096)
	at := int64(0)
	for all := size(f); at < all; {
		k, _ := f.ReadAt(buf, at)
		at += int64(k)
	}
	fmt.Println(at)
}
