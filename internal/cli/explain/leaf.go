// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// leaf is a leaf field of one version, with its verdict and its parsed path.
type leaf struct {
	compile.FieldVerdict
	path path
}

// leaves are the leaf fields of one version.
type leaves []leaf

// leavesOf returns the leaf fields of a version in conversions between a spoke and the hub, for an object of that version.
func leavesOf(all []compile.FieldVerdict, spoke, version string, object any) leaves {
	var found leaves
	for _, verdict := range all {
		if verdict.Spoke == spoke && verdict.Version == version {
			verdict.Root = parse(verdict.Root).selected(object).String()
			found = append(found, leaf{verdict, parse(verdict.Path).selected(object)})
		}
	}
	return found
}

// containing returns the leaf field that contains a field, nil if there is none: of
// several, the one with the longest path, and then with the most names in it.
func (l leaves) containing(p path) *leaf {
	var best *leaf
	for i := range l {
		if p.matches(l[i].path) && (best == nil || len(l[i].path) > len(best.path) ||
			len(l[i].path) == len(best.path) && l[i].path.names() > best.path.names()) {
			best = &l[i]
		}
	}
	return best
}

// first returns the first leaf field that has a property, nil if there is none.
func (l leaves) first(has func(leaf) bool) *leaf {
	if i := slices.IndexFunc(l, has); i >= 0 {
		return &l[i]
	}
	return nil
}

// ruledAs returns a leaf field of the rule that covers exactly this field, nil if there is none.
func (l leaves) ruledAs(p path) *leaf {
	return l.first(func(leaf leaf) bool { return leaf.Rule != "" && slices.Equal(parse(leaf.Root), p) })
}

// ruledIn returns a leaf field of a rule in an object, nil if there is none.
func (l leaves) ruledIn(p path) *leaf {
	return l.first(func(leaf leaf) bool { return leaf.Rule != "" && leaf.path.matches(p) })
}

// movedAs returns a leaf field in an object, list or map that a rule moves as a whole, nil if there is none.
func (l leaves) movedAs(p path) *leaf {
	return l.first(func(leaf leaf) bool {
		root := parse(leaf.Root)
		return leaf.Rule != "" && len(root) == len(p) && p.matches(root)
	})
}

// below reports whether there are leaf fields below a field.
func (l leaves) below(p path) bool {
	return slices.ContainsFunc(l, func(leaf leaf) bool { return len(leaf.path) > len(p) && leaf.path.matches(p) })
}

// has reports whether a version has a field.
func (l leaves) has(p path) bool {
	return slices.ContainsFunc(l, func(leaf leaf) bool { return leaf.path.matches(p) || p.matches(leaf.path) })
}

// fieldValue is a field of an object, with the leaf field that contains it, if there is one.
type fieldValue struct {
	path  path
	value any
	leaf  *leaf
}

// fieldsOf returns the fields of an object: the leaf fields of its version, and the
// scalars and empty objects between them.
func (l leaves) fieldsOf(object any) []fieldValue {
	var all []fieldValue
	l.walk(object, nil, func(field fieldValue) { all = append(all, field) })
	return all
}

func (l leaves) walk(value any, at path, visit func(fieldValue)) {
	if len(at) == 0 || l.below(at) {
		switch node := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(node)) {
				if next := at.child(name); !l.isEnvelope(next) {
					l.walk(node[name], next, visit)
				}
			}
			if len(node) > 0 || len(at) == 0 {
				return
			}
		case []any:
			for i, value := range node {
				l.walk(value, at.child("["+strconv.Itoa(i)+"]"), visit)
			}
			if len(node) > 0 {
				return
			}
		}
	}
	visit(fieldValue{at, value, l.containing(at)})
}

// isEnvelope reports whether no rule can have a field, because it belongs to the API
// server or holds preserved data.
func (l leaves) isEnvelope(at path) bool {
	switch at[0] {
	case "apiVersion", "kind":
		return true
	case "metadata":
		isPreserved := len(at) > 2 && at[1] == "annotations" && strings.HasPrefix(at[2], conversion.PreservedPrefix)
		return isPreserved || !l.has(at)
	}
	return false
}

// path leads to a field. Its segments are names, indexes such as [0], and
// conversion.Each.
type path []string

// segments of a path as users and policies write it.
var segments = regexp.MustCompile(`\["[^"]+"\]|\[[^\]]+\]|\.?[^.\[]+`)

// parse reads a path: .spec.ports[*].name, spec.ports[0].name, .labels["a.b/c"].
func parse(text string) path {
	var p path
	for _, segment := range segments.FindAllString(text, -1) {
		if quoted, ok := strings.CutPrefix(segment, `["`); ok {
			segment = strings.TrimSuffix(quoted, `"]`)
		}
		p = append(p, strings.TrimPrefix(segment, "."))
	}
	return p
}

// Split returns the segments of a field's path: names, and indexes such as [0].
func Split(path string) []string { return parse(path) }

// Join writes segments as a field's path.
func Join(segments []string) string { return path(segments).String() }

func (p path) String() string {
	var text strings.Builder
	for _, segment := range p {
		if strings.HasPrefix(segment, "[") && strings.HasSuffix(segment, "]") {
			text.WriteString(segment)
		} else {
			text.WriteString(conversion.Path{segment}.String())
		}
	}
	return text.String()
}

// selected returns the path with the indexes of the elements that an object has and that segments such as [name=main] select.
func (p path) selected(object any) path {
	p = slices.Clone(p)
	for i, segment := range p {
		key, text, selects := tree.CutSelector(segment)
		if !selects {
			continue
		}
		list, _ := preserved.Find(object, p[:i])
		elements, _ := list.([]any)
		if at := slices.IndexFunc(elements, func(element any) bool {
			members, _ := element.(map[string]any)
			return members[key] == text
		}); at >= 0 {
			p[i] = "[" + strconv.Itoa(at) + "]"
		}
	}
	return p
}

// child returns the path of a member or element. It shares no memory with p.
func (p path) child(segment string) path { return append(slices.Clip(p), segment) }

// matches reports whether p leads to a field of the pattern, or below it.
func (p path) matches(pattern path) bool {
	return len(p) >= len(pattern) && conversion.Path(p).Meets(conversion.Path(pattern))
}

// names counts the names and indexes in a pattern. A pattern with more of them is more specific.
func (p path) names() int {
	n := 0
	for _, segment := range p {
		if segment != conversion.Each {
			n++
		}
	}
	return n
}

// substitute returns the pattern with the elements that p has where root has [*].
func (p path) substitute(pattern, root path) path {
	var elements []string
	for i, segment := range root {
		if segment == conversion.Each && i < len(p) {
			elements = append(elements, p[i])
		}
	}
	found := make(path, 0, len(pattern))
	for _, segment := range pattern {
		if segment == conversion.Each && len(elements) > 0 {
			segment, elements = elements[0], elements[1:]
		}
		found = append(found, segment)
	}
	return found
}
