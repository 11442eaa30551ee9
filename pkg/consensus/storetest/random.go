package storetest

import "testing"

func (s *suite) random(t *testing.T) {}
