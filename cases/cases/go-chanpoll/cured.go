// Collects sensor readings that several sources send now and then.
package main

import (
	"fmt"
	"sync"
	"time"
)

type reading struct {
	sensor int
	value  int
}

type collector struct {
	in   chan reading
	done chan struct{}
	sum  map[int]int
	n    int
}

func newCollector() *collector {
	return &collector{in: make(chan reading, 64), done: make(chan struct{}), sum: map[int]int{}}
}

func (c *collector) add(r reading) {
	c.sum[r.sensor] += r.value
	c.n++
}

func (c *collector) run() {
	defer close(c.done)
	for r := range c.in {
		c.add(r)
	}
}

func source(id int, out chan<- reading) {
	for i := 0; i < 25; i++ {
		time.Sleep(time.Duration(30+id) * time.Millisecond)
		out <- reading{id, i * (id + 1)}
	}
}

func main() {
	c := newCollector()
	go c.run()
	var wg sync.WaitGroup
	for id := 0; id < 3; id++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			source(id, c.in)
		}()
	}
	wg.Wait()
	close(c.in)
	<-c.done
	for id := 0; id < 3; id++ {
		fmt.Printf("sensor %d: %d\n", id, c.sum[id])
	}
	fmt.Println("readings:", c.n)
}
