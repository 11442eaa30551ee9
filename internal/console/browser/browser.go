// Package browser drives a headless Chromium that loads and operates a page, for tests of the rendering and for pictures.
package browser

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ErrMissing is the error of Find on a machine that has no Chromium.
var ErrMissing = errors.New("chromium is not installed (Debian: apt-get install --no-install-recommends chromium)")

// Find returns the path of the browser. The error wraps ErrMissing.
func Find() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrMissing
}

// A Size is the size of the window in pixels, and whether it prefers dark colours.
type Size struct {
	Width, Height int
	Dark          bool
}

// A Page is one page in a browser of its own. It is not safe for concurrent use.
type Page struct {
	pipe    *pipe
	cmd     *exec.Cmd
	session string
	said    *bytes.Buffer
}

// Open starts a browser on a page. dir is an empty folder for the browser's data. The browser ends with ctx. It runs without a sandbox,
// because root can have none: use it only for pages of this project. Close the page.
func Open(ctx context.Context, binary, dir, url string, size Size) (*Page, error) {
	p := &Page{said: &bytes.Buffer{}}
	p.cmd = exec.CommandContext(ctx, binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-extensions", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir="+dir, "about:blank")
	p.cmd.Stderr, p.cmd.WaitDelay = p.said, 5*time.Second
	var err error
	if p.pipe, err = start(p.cmd); err != nil {
		return nil, fmt.Errorf("chromium: %w", err)
	}
	if err := p.begin(url, size); err != nil {
		said := strings.Split(strings.TrimSpace(p.said.String()), "\n")
		return nil, errors.Join(fmt.Errorf("chromium: %w: %s", err, strings.Join(said[max(0, len(said)-5):], "\n")), p.Close())
	}
	return p, nil
}

// begin opens a tab of the given size and loads a page in it.
func (p *Page) begin(url string, size Size) error {
	var target struct {
		TargetID string `json:"targetId"`
	}
	if err := p.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	if err := p.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return err
	}
	p.session = attached.SessionID
	if err := errors.Join(p.Resize(size), p.call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)); err != nil {
		return err
	}
	return p.call("Page.navigate", map[string]any{"url": url}, nil)
}

// Resize changes the size and the colours of the window. A width below 600 is a phone's.
func (p *Page) Resize(size Size) error {
	colours := map[bool]string{true: "dark", false: "light"}[size.Dark]
	return errors.Join(
		p.call("Emulation.setDeviceMetricsOverride", map[string]any{
			"width": size.Width, "height": size.Height, "deviceScaleFactor": 1, "mobile": size.Width < 600,
		}, nil),
		p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": colours}}}, nil),
	)
}

// Eval runs JavaScript in the page, waits for its promise, and returns its value as text.
func (p *Page) Eval(script string) (string, error) {
	var got struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := p.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &got); err != nil {
		return "", err
	}
	if e := got.Exception; e != nil {
		return "", fmt.Errorf("chromium: %s %s", e.Text, e.Exception.Description)
	}
	return fmt.Sprint(got.Result.Value), nil
}

// Key presses a key, such as "Tab" or "ArrowLeft".
func (p *Page) Key(key string) error {
	code := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}[key]
	down := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
	if key == "Enter" {
		down["text"] = "\r"
	}
	return errors.Join(
		p.call("Input.dispatchKeyEvent", down, nil),
		p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code}, nil),
	)
}

// Picture returns what the window shows, as PNG.
func (p *Page) Picture() ([]byte, error) {
	var got struct {
		Data string `json:"data"`
	}
	if err := p.call("Page.captureScreenshot", map[string]any{"format": "png", "optimizeForSpeed": false}, &got); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(got.Data)
}

func (p *Page) call(method string, params map[string]any, result any) error {
	reply, err := p.pipe.call(p.session, method, params)
	if err == nil && result != nil {
		err = json.Unmarshal(reply, result)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// Close ends the browser.
func (p *Page) Close() error {
	_ = p.cmd.Process.Signal(os.Interrupt)
	p.pipe.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.cmd.Wait() // how it ends does not matter
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-done
	}
	return nil
}
