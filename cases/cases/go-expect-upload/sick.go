package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// An old appliance: it reads head and body, and only then answers.
func appliance(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			r := bufio.NewReader(c)
			for {
				length := 0
				for {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					fmt.Sscanf(line, "Content-Length: %d", &length)
					if line == "\r\n" {
						break
					}
				}
				body := make([]byte, length)
				if _, err := io.ReadFull(r, body); err != nil {
					return
				}
				sum := fmt.Sprintf("%x", sha256.Sum256(body))
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(sum), sum)
			}
		}()
	}
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go appliance(l)
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: 150 * time.Millisecond}}
	for i := 0; i < 10; i++ {
		body := bytes.Repeat([]byte{byte('a' + i)}, 3000+i*100)
		req, _ := http.NewRequest("PUT", fmt.Sprintf("http://%s/blob/%d", l.Addr(), i), bytes.NewReader(body))
		req.Header.Set("Expect", "100-continue")
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		sum, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("blob %d: %s\n", i, sum[:16])
	}
}
