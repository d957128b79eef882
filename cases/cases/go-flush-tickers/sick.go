package main

import (
	"bytes"
	"fmt"
	"sync"
	"time"
)

type session struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	out  bytes.Buffer
	stop chan bool
}

func (s *session) flush() {
	s.mu.Lock()
	s.out.Write(s.buf.Bytes())
	s.buf.Reset()
	s.mu.Unlock()
}

func (s *session) run(wg *sync.WaitGroup) {
	defer wg.Done()
	t := time.NewTicker(500 * time.Microsecond)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			s.flush()
			return
		case <-t.C:
			s.flush()
		}
	}
}

func (s *session) write(p string) {
	s.mu.Lock()
	s.buf.WriteString(p)
	s.mu.Unlock()
}

func main() {
	sessions := make([]*session, 30)
	var wg sync.WaitGroup
	for i := range sessions {
		s := &session{stop: make(chan bool)}
		sessions[i] = s
		wg.Add(1)
		go s.run(&wg)
	}
	for i := 0; i < 24; i++ { // a client speaks now and then
		sessions[i%30].write(fmt.Sprintf("message %d\n", i))
		time.Sleep(35 * time.Millisecond)
	}
	for _, s := range sessions {
		close(s.stop)
	}
	wg.Wait()
	n := 0
	for _, s := range sessions {
		n += s.out.Len()
	}
	fmt.Println("bytes out:", n)
}
