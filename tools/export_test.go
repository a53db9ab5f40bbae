package tools

import "satchel/tools/index"

// Tokens counts tokens as the limits do.
func Tokens(s string) int { return index.EstimateTokens(s) }

// Seeded is what an untouched overview is known by.
const Seeded = seeded
