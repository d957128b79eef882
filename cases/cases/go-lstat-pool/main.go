// Several workers each go through the same list of 500 paths for each item and ask whether they are links, as a
// resolver without a memory does. "cured": they share one.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

const paths = 500

var (
	lock  sync.Mutex
	known = map[string]bool{}
)

func isLink(path string, cured bool) bool {
	if cured {
		lock.Lock()
		defer lock.Unlock()
		if link, told := known[path]; told {
			return link
		}
	}
	info, err := os.Lstat(path)
	link := err == nil && info.Mode()&os.ModeSymlink != 0
	if cured {
		known[path] = link
	}
	return link
}

func main() {
	cured := os.Args[1] == "cured"
	items, _ := strconv.Atoi(os.Args[2])
	var all sync.WaitGroup
	links := make([]int, 4)
	for worker := range links {
		all.Add(1)
		go func(worker int) {
			defer all.Done()
			for item := 0; item < items; item++ {
				for i := 0; i < paths; i++ {
					if isLink("dirs/module-"+strconv.Itoa(i)+".js", cured) {
						links[worker]++
					}
				}
			}
		}(worker)
	}
	all.Wait()
	fmt.Println(links[0] + links[1] + links[2] + links[3])
}
