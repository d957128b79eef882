// Reads many small files.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	n := 3000
	if len(os.Args) > 1 {
		n, _ = strconv.Atoi(os.Args[1])
	}
	dir, err := os.MkdirTemp("", "many")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.WriteFile(fmt.Sprint(dir, "/", 0), []byte("x"), 0o600)
	for i := 1; i < n; i++ {
		os.Link(fmt.Sprint(dir, "/", 0), fmt.Sprint(dir, "/", i))
	}
	total := 0
	buf := make([]byte, 64)
	for i := 0; i < n; i++ {
		f := open(fmt.Sprint(dir, "/", i))
		k, _ := f.Read(buf)
		total += k
		f.Close()
	}
	fmt.Println(total)
}

func open(path string) *os.File {
	f, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	return f
}
