// Adds up the packets of each interface by its name.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
)

func main() {
	n, _ := strconv.Atoi(os.Args[2])
	all, err := net.Interfaces()
	if err != nil {
		panic(err)
	}
	names := map[int]string{}
	for _, one := range all {
		names[one.Index] = one.Name
	}
	sums := map[string]int{}
	for i := 0; i < n; i++ {
		index := all[i%len(all)].Index
		name := names[index]
		if os.Args[1] == "sick" {
			found, err := net.InterfaceByIndex(index)
			if err != nil {
				panic(err)
			}
			name = found.Name
		}
		sums[name] += i * 7
	}
	fmt.Println(len(sums), sums[all[0].Name])
}
