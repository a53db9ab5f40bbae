package web

import "time"

const factCacheEntries = 4096

type factCache struct{}

func newFactCache(int) *factCache { return &factCache{} }

func (e *editing) routeMemory(add adder) {}

func newFact(_, _ string, _ time.Time) string { return "" }
