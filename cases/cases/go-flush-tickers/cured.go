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
	wake *time.Timer
}

func (s *session) flush() {
	s.mu.Lock()
	s.out.Write(s.buf.Bytes())
	s.buf.Reset()
	s.mu.Unlock()
}

func (s *session) run(wg *sync.WaitGroup) {
	defer wg.Done()
	for {
		select {
		case <-s.stop:
			s.flush()
			return
		}
	}
}

func (s *session) write(p string) {
	s.mu.Lock()
	if s.buf.Len() == 0 {
		s.wake.Reset(500 * time.Microsecond)
	}
	s.buf.WriteString(p)
	s.mu.Unlock()
}

func main() {
	sessions := make([]*session, 30)
	var wg sync.WaitGroup
	for i := range sessions {
		s := &session{stop: make(chan bool)}
		s.wake = time.AfterFunc(time.Hour, s.flush)
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
