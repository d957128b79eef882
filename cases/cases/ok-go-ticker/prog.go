// Streams samples of a meter, one each 10 ms as the receiver expects them, with sequence numbers and deadlines.
package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"time"
)

const samples = 100

type stats struct {
	received, gaps int
	sum            uint64
}

func receiver(c *net.UDPConn, out chan<- stats) {
	var s stats
	buf := make([]byte, 64)
	for next := uint32(0); next < samples; next++ {
		c.SetReadDeadline(time.Now().Add(3 * time.Second))
		n, _, err := c.ReadFromUDP(buf)
		if err != nil || n != 12 {
			break
		}
		if binary.BigEndian.Uint32(buf) != next {
			s.gaps++
		}
		s.received++
		s.sum += binary.BigEndian.Uint64(buf[4:])
	}
	out <- s
}

type meter struct{ state uint64 }

func (m *meter) sample() uint64 {
	m.state = m.state*6364136223846793005 + 1442695040888963407
	return m.state >> 40
}

func main() {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := make(chan stats)
	go receiver(c, out)
	to, err := net.DialUDP("udp", nil, c.LocalAddr().(*net.UDPAddr))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m := meter{state: 7}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := uint32(0); i < samples; i++ {
		<-tick.C
		b := binary.BigEndian.AppendUint32(nil, i)
		to.Write(binary.BigEndian.AppendUint64(b, m.sample()))
	}
	s := <-out
	fmt.Printf("received %d, gaps %d, sum %d\n", s.received, s.gaps, s.sum)
}
