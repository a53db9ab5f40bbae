package tools

import (
	"satchel/tools/index/present"
)

// Tokens counts tokens as the limits do.
func Tokens(s string) int { return present.EstimateTokens(s) }

// Seeded is what an untouched overview is known by.
const Seeded = seeded

// Examples returns a valid call's arguments for every tool, by the name without prefix.
func (s *Registry) Examples() map[string]string {
	out := map[string]string{}
	for _, t := range s.tools {
		out[t.Name] = t.example
	}
	return out
}

// FormOfChatGPT reports whether ChatGPT demands the exact form of a tool.
func (s *Registry) FormOfChatGPT(listed string) bool {
	t, _ := s.find(listed)
	return t.forChatGPT != nil
}
