// Truncates each file that os.Create has just emptied, and cuts it to what was written.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	top, _ := os.MkdirTemp("/dev/shm", "size")
	text := make([]byte, 2000)
	total := 0
	for i := 0; i < n; i++ {
		f, err := os.Create(top + "/f")
		if err != nil {
			panic(err)
		}
		f.Truncate(0)
		wrote, _ := f.Write(text)
		f.Truncate(int64(wrote))
		total += wrote
		f.Close()
	}
	os.RemoveAll(top)
	fmt.Println(total)
}
