package web

import "math"

// Chart is the area of a bar chart, in its own units.
type Chart struct {
	Width, Height int
	Gap           int     // the space between two bars
	Count         int     // the number of bars
	Top           int64   // the value of a bar as high as the chart
	Least         float64 // the least height of a bar
}

// Bar is a rectangle of a chart.
type Bar struct{ X, Y, Width, Height float64 }

// Bar returns the bar of a value at index i. The bar stands on other bars. below is the sum of
// their values.
func (c Chart) Bar(i int, value, below int64) Bar {
	step := float64(c.Width+c.Gap) / float64(c.Count)
	unit := float64(c.Height) / float64(max(c.Top, 1))
	height := max(float64(value)*unit, c.Least)
	return Bar{
		X: tenths(float64(i) * step), Y: tenths(float64(c.Height) - float64(below)*unit - height),
		Width: tenths(max(1, step-float64(c.Gap))), Height: tenths(height),
	}
}

func tenths(x float64) float64 { return math.Round(10*x) / 10 }
