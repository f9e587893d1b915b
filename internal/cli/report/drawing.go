// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/cli/rulekinds"
)

// drawing shows both versions as trees, and their links as curves between them.
// All rows have the same height, so that curves need no script: their coordinates
// are rows from the top, and hundredths from the left.
type drawing struct {
	Spoke, Hub []row
	Curves     []curve
	// Height is that of the taller side, in rows.
	Height int
	// Kinds are the kinds of links in the drawing, for the legend.
	Kinds []*rulekinds.Kind
}

// row is one line of a tree.
type row struct {
	// Depth indents it, to at most maxDepth.
	Depth int
	Label string
	Note  string
	// Links end in this row; an object that only contains others has none.
	Links []*link
	// Same marks a row for fields that are the same in both versions.
	Same bool
}

const maxDepth = 7

// curve is one line of a link.
type curve struct {
	Kind *rulekinds.Kind
	Path string
	// From and To are the rows that the curve connects, counted from 0; -1 if it ends
	// between the sides. Browser tests compare the curve with them.
	From, To int
}

// node is a field in the tree of one side.
type node struct {
	name     string
	path     string
	children []*node
	links    []*link
	end      *end
	// same are the paths in it, itself included, that are the same in both versions.
	same []string
	// other is the number of links that end in it or below it.
	other int
}

// at returns the field at the path, and creates it if necessary.
func (n *node) at(path string) *node {
	for _, name := range split(path) {
		i := slices.IndexFunc(n.children, func(c *node) bool { return c.name == name })
		if i < 0 {
			i = len(n.children)
			n.children = append(n.children, &node{name: name, path: n.path + name})
		}
		n = n.children[i]
	}
	return n
}

// sum adds the fields below each field to it, and sorts them.
func (n *node) sum() {
	for _, child := range n.children {
		child.sum()
		n.same = append(n.same, child.same...)
		n.other += child.other
	}
	n.other += len(n.links)
	slices.Sort(n.same)
	slices.SortFunc(n.children, func(a, b *node) int { return strings.Compare(a.name, b.name) })
}

// find returns the field at the path, or nil.
func (n *node) find(path string) *node {
	for n != nil && n.path != path {
		i := slices.IndexFunc(n.children, func(c *node) bool {
			return path == c.path || strings.HasPrefix(path, c.path) && strings.ContainsAny(path[len(c.path):len(c.path)+1], ".[")
		})
		if i < 0 {
			return nil
		}
		n = n.children[i]
	}
	return n
}

// isSame reports whether a field and everything below it is the same in both versions.
func isSame(n, other *node) bool {
	return other != nil && n.other == 0 && other.other == 0 && slices.Equal(n.same, other.same)
}

func draw(m *mapping) drawing {
	spoke, hub := &node{}, &node{}
	for _, l := range slices.Concat(m.Ruled, m.Preserved) {
		addEnds(spoke, l, l.Spoke)
		addEnds(hub, l, l.Hub)
	}
	for _, same := range m.Same {
		for _, path := range same.Paths {
			for _, side := range []*node{spoke, hub} {
				leaf := side.at(path)
				leaf.same = append(leaf.same, path)
			}
		}
	}
	spoke.sum()
	hub.sum()
	d := drawing{Spoke: rowsOf(spoke, hub, 0, nil), Hub: rowsOf(hub, spoke, 0, nil)}
	d.Height = max(len(d.Spoke), len(d.Hub))
	d.curves(slices.Concat(m.Ruled, m.Preserved))
	return d
}

func addEnds(side *node, l *link, ends []end) {
	for i := range ends {
		n := side.at(ends[i].Path)
		n.links, n.end = append(n.links, l), &ends[i]
	}
}

// rowsOf returns the rows of a field's own fields. Fields that are the same in both
// versions share one row, after the others.
func rowsOf(n, other *node, depth int, rows []row) []row {
	var same []*node
	for _, child := range n.children {
		counterpart := other.find(child.path)
		if isSame(child, counterpart) {
			same = append(same, child)
			continue
		}
		child = collapse(child, other)
		rows = append(rows, row{Depth: min(depth, maxDepth), Label: child.path[len(n.path):], Note: noteOf(child), Links: child.links})
		rows = rowsOf(child, other, depth+1, rows)
	}
	if len(same) > 0 {
		rows = append(rows, sameRow(same, depth))
	}
	return rows
}

// collapse skips fields without links that contain only one field: they share its row.
func collapse(n, other *node) *node {
	for len(n.links) == 0 && len(n.children) == 1 && !isSame(n.children[0], other.find(n.children[0].path)) {
		n = n.children[0]
	}
	return n
}

func noteOf(n *node) string {
	switch {
	case n.end == nil:
		return ""
	case n.end.Leaves > 1:
		return count(n.end.Leaves, "field")
	}
	return n.end.Type
}

// sameNames is the number of names in a row for fields that are the same.
const sameNames = 8

func sameRow(same []*node, depth int) row {
	var names []string
	fields := 0
	for _, n := range same {
		names = append(names, n.name)
		fields += len(n.same)
	}
	if len(names) > sameNames {
		names = append(names[:sameNames], "…")
	}
	return row{Depth: min(depth, maxDepth), Label: strings.Join(names, " "), Note: count(fields, "field"), Same: true}
}

// curves returns the curves of each link. If a link has several fields on both
// sides, its curves meet in the middle.
func (d *drawing) curves(links []*link) {
	d.Curves = append(d.Curves, d.sameCurves()...)
	drawn := []*rulekinds.Kind{}
	for _, l := range links {
		from, to := rowsWith(d.Spoke, l), rowsWith(d.Hub, l)
		d.Curves = append(d.Curves, curvesOf(l.Kind, from, to)...)
		if !slices.Contains(drawn, l.Kind) {
			drawn = append(drawn, l.Kind)
		}
	}
	if slices.ContainsFunc(d.Spoke, func(r row) bool { return r.Same }) {
		drawn = append(drawn, rulekinds.All["same"])
	}
	d.Kinds = drawn
}

func rowsWith(rows []row, l *link) []int {
	var at []int
	for i, r := range rows {
		if slices.Contains(r.Links, l) {
			at = append(at, i)
		}
	}
	return at
}

func curvesOf(of *rulekinds.Kind, from, to []int) []curve {
	var curves []curve
	switch {
	case len(to) == 0:
		for _, row := range from {
			curves = append(curves, curve{of, fmt.Sprintf("M0 %s H12", middle(row)), row, -1})
		}
	case len(from) == 0:
		for _, row := range to {
			curves = append(curves, curve{of, fmt.Sprintf("M88 %s H100", middle(row)), -1, row})
		}
	case len(from) == 1 || len(to) == 1:
		for _, left := range from {
			for _, right := range to {
				curves = append(curves, curve{of, bezier(0, middle(left), 100, middle(right)), left, right})
			}
		}
	default:
		joint := middleOf(slices.Concat(from, to))
		for _, left := range from {
			curves = append(curves, curve{of, bezier(0, middle(left), 50, joint), left, -1})
		}
		for _, right := range to {
			curves = append(curves, curve{of, bezier(50, joint, 100, middle(right)), -1, right})
		}
	}
	return curves
}

// sameCurves returns the curves between rows of fields that are the same: within one
// object, they have the same order on both sides.
func (d *drawing) sameCurves() []curve {
	var left, right []int
	for i, r := range d.Spoke {
		if r.Same {
			left = append(left, i)
		}
	}
	for i, r := range d.Hub {
		if r.Same {
			right = append(right, i)
		}
	}
	var curves []curve
	for i := range min(len(left), len(right)) {
		curves = append(curves, curve{rulekinds.All["same"], bezier(0, middle(left[i]), 100, middle(right[i])), left[i], right[i]})
	}
	return curves
}

// middle returns the middle of a row, in halves to avoid rounding.
func middle(row int) string { return fmt.Sprintf("%d.5", row) }

func middleOf(rows []int) string {
	sum := 0
	for _, row := range rows {
		sum += 2*row + 1
	}
	return fmt.Sprintf("%.2f", float64(sum)/float64(2*len(rows)))
}

// bezier returns a curve that starts and ends horizontally.
func bezier(x1 int, y1 string, x2 int, y2 string) string {
	half := (x1 + x2) / 2
	return fmt.Sprintf("M%d %s C%d %s %d %s %d %s", x1, y1, half, y1, half, y2, x2, y2)
}
