// Looks up the names that the entries of an index give, backwards: index and names lie in one file.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
)

const (
	entries = 2000
	entry   = 16
	name    = 12
	names   = entries * entry
)

func build(f *os.File) {
	var table bytes.Buffer
	for n := 0; n < entries; n++ {
		var e [entry]byte
		binary.LittleEndian.PutUint32(e[:], uint32(n))
		binary.LittleEndian.PutUint32(e[8:], uint32(names+n*name))
		table.Write(e[:])
	}
	for n := 0; n < entries; n++ {
		table.WriteString(fmt.Sprintf("name%08d", n))
	}
	f.Write(table.Bytes())
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[2])
	f, err := os.CreateTemp("", "index")
	if err != nil {
		panic(err)
	}
	defer os.Remove(f.Name())
	build(f)
	sum := 0
	for r := 0; r < rounds; r++ {
		var whole []byte
		if os.Args[1] == "cured" {
			whole = make([]byte, names+entries*name)
			f.ReadAt(whole, 0)
		}
		e, s := make([]byte, entry), make([]byte, name)
		for n := entries - 1; n >= 0; n-- {
			if whole != nil {
				copy(e, whole[n*entry:])
			} else {
				f.ReadAt(e, int64(n*entry))
			}
			at := int64(binary.LittleEndian.Uint32(e[8:]))
			if whole != nil {
				copy(s, whole[at:])
			} else {
				f.ReadAt(s, at)
			}
			sum += int(s[11]) + int(e[0])
		}
	}
	fmt.Println(sum)
}
