// Eight workers store the entries of a cache that can be computed again.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	jobs := make(chan int)
	var done sync.WaitGroup
	for w := 0; w < 8; w++ {
		done.Add(1)
		go func() {
			defer done.Done()
			for job := range jobs {
				f, err := os.Create(fmt.Sprintf("data/entry-%d", job))
				if err != nil {
					panic(err)
				}
				fmt.Fprintln(f, job*job)
				if len(os.Args) < 3 {
					f.Sync()
				}
				f.Close()
			}
		}()
	}
	for i := 0; i < n; i++ {
		jobs <- i
	}
	close(jobs)
	done.Wait()
	fmt.Println(n, "entries")
}
