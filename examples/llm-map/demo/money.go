package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// costByMetrics returns what a process counts as the cost of its calls, in millionths, from its page of metrics.
func costByMetrics(ctx context.Context, address string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	return costIn(res.Body)
}

// costIn adds up the metric llm_map_cost_total, which is in the currency of the prices, in millionths.
func costIn(page io.Reader) (float64, error) {
	sum, found := 0.0, false
	lines := bufio.NewScanner(page)
	for lines.Scan() {
		name, _, _ := strings.Cut(lines.Text(), "{")
		fields := strings.Fields(lines.Text())
		if name != "llm_map_cost_total" || len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return 0, fmt.Errorf("the metric llm_map_cost_total: %w", err)
		}
		sum, found = sum+n, true
	}
	if err := lines.Err(); err != nil || !found {
		return 0, fmt.Errorf("the page of metrics has no llm_map_cost_total (%w)", errors.Join(err, io.ErrUnexpectedEOF))
	}
	return sum * 1e6, nil
}
