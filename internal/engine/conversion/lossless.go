// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sort"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// lossless converts objects by the law of package preserve: rules are functions (function.go), and everything that they
// lose is preserved. It is what a Converter will be. Tests compare both.
type lossless struct {
	*Converter
	spokes map[*version]*spokeFunctions
	// hint covers every path that the ruleset uses, in any version.
	hint *tree.Hint
	// fingerprint identifies rules and schemas in preserved data.
	fingerprint string
}

// spokeFunctions are the rules of a spoke.
type spokeFunctions struct {
	// there and back are the functions to the hub and from it.
	there, back *function
	// names are those of the spoke for those of the hub.
	names *shape.Names
	// shared are the fields that other spokes have, too, and the hub lacks.
	shared []sharedField
}

func newLossless(c *Converter) *lossless {
	l := &lossless{Converter: c, spokes: map[*version]*spokeFunctions{}, hint: c.projection.hint()}
	const digits = 8
	l.fingerprint = HashOf([]byte(c.ruleset.Hash() + c.schemas))[:digits]
	for _, v := range c.versions {
		if spoke := c.ruleset.spoke(v.name); spoke != nil {
			toHub, toSpoke := NamesOf(spoke.Renamed)
			there, back := spoke.Root.functions(toHub, toSpoke, [2]*direction{v.toHub, v.fromHub})
			l.spokes[v] = &spokeFunctions{there: there, back: back, names: toSpoke}
		}
	}
	for v, functions := range l.spokes {
		functions.shared = l.sharedFields(&c.ruleset.spoke(v.name).Root, nil, v)
	}
	return l
}

func (c *lossless) convert(dst, text []byte, toVersion string, stop func(memory int64) bool) ([]byte, Outcome, error) {
	s := stepPool.Get().(*step)
	defer s.release()
	s.start(stop)
	s.outcome = Outcome{}
	a := tree.NewArena()
	defer a.Free()
	r := &conversionRun{step: s, Arena: a}
	err := a.Limit(func(work, memory int64) error {
		switch {
		case work > workLimit:
			return &BudgetError{Cost: work, Limit: workLimit}
		case stop != nil && stop(memory):
			return ErrStopped
		}
		return nil
	}, func() (err error) {
		dst, err = c.convertText(r, dst, text, toVersion)
		return err
	})
	return dst, s.outcome, err
}

func (c *lossless) convertText(r *conversionRun, dst, text []byte, toVersion string) ([]byte, error) {
	root, err := r.ReadWith(text, c.hint)
	if err != nil {
		return dst, failf(CauseInvalidJSON, "%v", err)
	}
	from, err := c.versionOfTree(root)
	if err != nil {
		return dst, err
	}
	r.outcome.Read, r.outcome.From = len(text), from.name
	to := c.version(toVersion)
	switch {
	case to == nil:
		return dst, c.unknownVersion(toVersion)
	case from == to:
		return append(dst, text...), nil
	}
	if root, err = c.convertTree(r, root, from, to); err != nil {
		return dst, err
	}
	return root.Append(dst), nil
}

func (c *lossless) versionOfTree(root *tree.Node) (*version, error) {
	if !root.Is(tree.Object) {
		return nil, failf(CauseWrongKind, "a %s object was expected", c.ruleset.Kind)
	}
	if metadata := root.Get("metadata"); metadata != nil && !metadata.Is(tree.Object) && !metadata.Is(tree.Null) {
		return nil, errors.New("its metadata is not an object")
	}
	return c.versionNamed(root.Get("apiVersion").Text(), root.Get("kind").Text())
}

// preservedData is the preserved data of an object, by version.
type preservedData map[*version]preserve.Data

// convertTree converts between two versions. Between two spokes, the hub form only exists for the rules, so values that
// the hub's schema does not allow are restored in it. If the result does not fit the target's schema, the conversion runs
// again without these values.
func (c *lossless) convertTree(r *conversionRun, root *tree.Node, from, to *version) (*tree.Node, error) {
	metadata := root.Get("metadata")
	r.complete = metadata.Get("name").Text() != "" || metadata.Get("uid").Text() != ""
	r.objectName, r.objectNamespace = nameText(metadata.Get("name")), nameText(metadata.Get("namespace"))
	root, data := c.takeData(r, root)
	between := c.version(c.ruleset.Hub)
	source, hub, target := preserve.Of(from.shape, !r.complete), preserve.Of(between.shape, !r.complete), preserve.Of(to.shape, !r.complete)
	if from == between || to == between {
		root = c.convertBetween(r, root, from, to, source, target, data)
		return c.putData(r, root, from, data)
	}
	through := func(hub preserve.Schema, data preservedData) *tree.Node {
		atHub := c.convertBetween(r, root, from, between, source, hub, data)
		return c.convertBetween(r, atHub, between, to, hub, target, data)
	}
	lenient, misfit := hub.Lenient()
	before := maps.Clone(data)
	result := through(lenient, data)
	if *misfit && !target.Allows(result) {
		data = before
		result = through(hub, data)
	}
	return c.putData(r, result, from, data)
}

func nameText(n *tree.Node) []byte {
	if n.Text() == "" {
		return nil
	}
	return n.JSON()
}

// convertBetween converts between a spoke and the hub, and changes the preserved data.
func (c *lossless) convertBetween(r *conversionRun, root *tree.Node, from, to *version, source, target preserve.Schema, data preservedData) *tree.Node {
	v := &preserve.Versions{Arena: r.Arena, Source: source, Target: target, Rules: c.fingerprint, FrozenStatus: c.ruleset.RefusesStatus}
	spoke := c.spokes[from]
	if spoke != nil {
		v.There, v.Back = bound{spoke.there, r}, bound{spoke.back, r}
	} else {
		v.There, v.Back = bound{c.spokes[to].back, r}, bound{c.spokes[to].there, r}
		c.adopt(to, data)
	}
	ofTarget, ofSource := data[to], data[from]
	root, ofTarget.Entries, ofSource.Entries = v.Convert(root, ofTarget.Entries, ofSource.Entries)
	data[to], data[from] = ofTarget, ofSource
	if spoke != nil {
		c.discardShared(from, data)
	}
	r.NewRun()
	return r.With(root, "apiVersion", r.NewText(c.ruleset.Group+"/"+to.name))
}

// adopt moves the entries of fields that a spoke shares with other spokes, and the hub lacks, to that spoke. Its own
// entries win.
func (c *lossless) adopt(to *version, data preservedData) {
	own := data[to]
	for _, field := range c.spokes[to].shared {
		other := c.version(field.sibling)
		of := data[other]
		of.Entries = slices.DeleteFunc(slices.Clone(of.Entries), func(e preserve.Entry) bool {
			at, is := e.At.Under(field.theirs, field.own, Each)
			if !is || e.Kind != preserve.Value {
				return false
			}
			if e.At = at; !slices.ContainsFunc(own.Entries, func(o preserve.Entry) bool { return o.Kind == e.Kind && slices.Equal(o.At, at) }) {
				own.Entries = append(slices.Clip(own.Entries), e)
			}
			return true
		})
		data[other] = of
	}
	data[to] = own
}

// discardShared removes the entries of other spokes for fields that a spoke shares with them, and of which it has just
// preserved a value.
func (c *lossless) discardShared(from *version, data preservedData) {
	for _, field := range c.spokes[from].shared {
		other := c.version(field.sibling)
		of := data[other]
		of.Entries = slices.DeleteFunc(slices.Clone(of.Entries), func(e preserve.Entry) bool {
			at, is := e.At.Under(field.theirs, field.own, Each)
			return is && e.Kind == preserve.Value && slices.ContainsFunc(data[from].Entries, func(o preserve.Entry) bool { return o.Kind == e.Kind && slices.Equal(o.At, at) })
		})
		data[other] = of
	}
}

// sharedField is a field of a spoke that another spoke has, too, and the hub lacks.
type sharedField struct {
	own, theirs Path
	sibling     string
}

// sharedFields returns those of a scope. own and theirs lead to the scope, in the names of the versions.
func (c *lossless) sharedFields(s *Scope, at Path, v *version) (all []sharedField) {
	for i := range s.OnlySpoke {
		leaf := &s.OnlySpoke[i]
		for _, sibling := range leaf.Siblings {
			if other := c.version(sibling); other != nil {
				path := slices.Concat(at, leaf.Path)
				all = append(all, sharedField{path.Rename(c.spokes[v].names), path.Rename(c.spokes[other].names), sibling})
			}
		}
	}
	for i := range s.Collections {
		collection := &s.Collections[i]
		all = append(all, c.sharedFields(&collection.Scope, collection.Inside(slices.Concat(at, collection.At(false))), v)...)
	}
	return all
}

// takeData removes the annotations with preserved data from an object, and returns the data.
func (c *lossless) takeData(r *conversionRun, root *tree.Node) (*tree.Node, preservedData) {
	data := preservedData{}
	for _, v := range c.versions {
		at := []string{"metadata", "annotations", v.annotation.text}
		text := root.At(at)
		if !text.Is(tree.String) {
			continue
		}
		if read, ok := preserve.Decode(r.Arena, []byte(text.Text())); ok {
			data[v] = read
			root = r.WithAt(root, at, nil)
		}
	}
	if len(data) > 0 && root.Get("metadata").Get("annotations").Len() == 0 {
		root = r.WithAt(root, []string{"metadata", "annotations"}, nil)
	}
	return root, data
}

// putData sets the annotations with preserved data. from is the version that the object was converted from.
func (c *lossless) putData(r *conversionRun, root *tree.Node, from *version, data preservedData) (*tree.Node, error) {
	r.NewRun()
	if !root.Get("metadata").Is(tree.Object) {
		root = r.With(root, "metadata", r.NewObject())
	}
	for _, v := range c.versions {
		kept := data[v]
		if len(kept.Entries) == 0 && kept.Unreadable == "" {
			continue
		}
		at := []string{"metadata", "annotations", v.annotation.text}
		if text := root.At(at); text.Is(tree.String) {
			kept.Unreadable = text.Text()
			root = r.WithAt(root, at, nil)
		}
		others := annotationsSize(root.At(at[:2]))
		text, err := c.encode(r, kept, MaxAnnotations-len(v.annotation.text)-others)
		if err != nil {
			return root, &OverflowError{Version: from.name, Preserved: len(text), Others: others}
		}
		r.outcome.PreservedBytes += len(text)
		root = r.WithAt(root, at, r.NewText(string(text)))
	}
	return root, nil
}

var errNoRoom = errors.New("there is no room")

// encode returns the text of preserved data that has room, perhaps without its largest values.
func (c *lossless) encode(r *conversionRun, data preserve.Data, room int) (text []byte, err error) {
	if len(data.Entries) == 0 {
		text = []byte(data.Unreadable)
	} else {
		text = data.Encode()
	}
	switch {
	case len(text) <= room:
		return text, nil
	case !c.ruleset.DropOverflow || len(data.Entries) == 0:
		return text, errNoRoom
	}
	size := func(e preserve.Entry) int {
		if e.Value == nil {
			return 0
		}
		return len(e.Value.JSON())
	}
	largest := slices.Clone(data.Entries)
	slices.SortStableFunc(largest, func(a, b preserve.Entry) int { return cmp.Compare(size(b), size(a)) })
	without := func(count int) []byte {
		rest := preserve.Data{Entries: largest[count:], Unreadable: data.Unreadable}
		for _, e := range largest[:min(count, maxDropped)] {
			rest.Dropped = append(rest.Dropped, e.At.Pointer())
		}
		return rest.Encode()
	}
	// The smallest number of values to drop: the text shrinks with each of them.
	count := 1 + sort.Search(len(largest)-1, func(i int) bool { return len(without(i+1)) <= room })
	r.outcome.DroppedValues += count
	if text = without(count); len(text) > room {
		return text, errNoRoom
	}
	return text, nil
}

// annotationsSize is the size of annotations in bytes, as the API server counts it.
func annotationsSize(annotations *tree.Node) (total int) {
	for _, m := range annotations.Members() {
		total += len(m.Name) + len(m.Value.Text())
	}
	return total
}
