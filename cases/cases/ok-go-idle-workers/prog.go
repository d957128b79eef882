package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Four workers classify what a sensor (another process) measures; it has a value every 40 ms.

func sensor() {
	v := 11
	t := time.NewTicker(40 * time.Millisecond)
	for i := 0; i < 30; i++ {
		<-t.C
		v = (v*73 + 19) % 211
		fmt.Println("value", v)
	}
}

func main() {
	if len(os.Args) > 1 {
		sensor()
		return
	}
	cmd := exec.Command(os.Args[0], "sensor")
	pipe, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		os.Exit(1)
	}
	queue := make(chan int, 16)
	var mu sync.Mutex
	counts := map[string]int{}
	var wg sync.WaitGroup
	for w := 0; w < 4; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for v := range queue {
				kind := "low"
				if v > 70 {
					kind = "mid"
				}
				if v > 140 {
					kind = "high"
				}
				mu.Lock()
				counts[kind]++
				mu.Unlock()
			}
		}()
	}
	sc := bufio.NewScanner(pipe)
	for sc.Scan() {
		var v int
		fmt.Sscanf(strings.TrimPrefix(sc.Text(), "value "), "%d", &v)
		queue <- v
	}
	close(queue)
	wg.Wait()
	cmd.Wait()
	for _, k := range []string{"low", "mid", "high"} {
		fmt.Println(k, counts[k])
	}
}
