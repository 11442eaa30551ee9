package browser

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// A pipe connects to a browser through two pipes of the process: JSON messages, each ended by a zero byte.
type pipe struct {
	to, from *os.File
	replies  chan reply
	id       int
}

// A reply is a message from the browser. Messages without an ID are events, which are ignored.
type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// start starts a browser that reads from descriptor 3 and writes to 4.
func start(cmd *exec.Cmd) (*pipe, error) {
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), to.Close())
	}
	cmd.ExtraFiles = []*os.File{in, out}
	err = cmd.Start()
	err = errors.Join(err, in.Close(), out.Close())
	p := &pipe{to: to, from: from, replies: make(chan reply, 16)}
	if err != nil {
		p.close()
		return nil, err
	}
	go p.read()
	return p, nil
}

// read reads replies until the browser has ended.
func (p *pipe) read() {
	defer close(p.replies)
	for r := bufio.NewReader(p.from); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var got reply
		if json.Unmarshal(text[:len(text)-1], &got) == nil && got.ID > 0 {
			p.replies <- got
		}
	}
}

// callTimeout bounds one call to the browser, on a busy machine.
const callTimeout = 30 * time.Second

// call makes one call and waits for its reply.
func (p *pipe) call(session, method string, params map[string]any) (json.RawMessage, error) {
	p.id++
	message := map[string]any{"id": p.id, "method": method, "params": params}
	if session != "" {
		message["sessionId"] = session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	if _, err := p.to.Write(append(text, 0)); err != nil {
		return nil, err
	}
	for late := time.After(callTimeout); ; {
		select {
		case got, ok := <-p.replies:
			switch {
			case !ok:
				return nil, errors.New("the browser has ended")
			case got.ID != p.id: // of a call that timed out
			case got.Error != nil:
				return nil, errors.New(got.Error.Message)
			default:
				return got.Result, nil
			}
		case <-late:
			return nil, fmt.Errorf("no reply for %s", callTimeout)
		}
	}
}

func (p *pipe) close() {
	_ = p.to.Close()
	_ = p.from.Close()
}
