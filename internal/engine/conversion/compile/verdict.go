// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Owner is where the value of a field is while the object is at the other version.
type Owner string

const (
	// OwnerExact is a field of the other version: the same field, or one that a rule names.
	OwnerExact Owner = "Exact"
	// OwnerPreserved is the annotation for preserved data.
	OwnerPreserved Owner = "Preserved"
	// OwnerDropped means that a rule drops the value, or derives it from the other version.
	OwnerDropped Owner = "Dropped"
)

// FieldVerdict describes what a conversion between a spoke and the hub does to one leaf field of
// one version. A leaf is a scalar, a list or map of scalars, or a value without a schema. The
// fields of an object, and of the elements of a list or map, are leaves of their own.
type FieldVerdict struct {
	// Spoke is the version that is converted to and from the hub.
	Spoke string
	// Version is the version that has the field: the spoke, or the hub.
	Version string
	// Path has the syntax of a policy. A path that ends in [*] stands for fields that the schema
	// does not name.
	Path  string
	Owner Owner
	// Rule is the path of the field's rule in the policy, empty if the field has none.
	Rule string
	// PartlyPreserved reports whether some values are preserved and others are not. Examples are a
	// text that does not fit the template of its rule, a list of two, or a text where the other
	// version has an integer.
	PartlyPreserved bool
	// Root is the field that the rule claims, or the annotation has, as a whole: this leaf field or
	// a parent. It is empty if there is neither.
	Root string
}

// String returns the name of a leaf field in messages.
func (l FieldVerdict) String() string { return l.Version + ":" + l.Path }

// policyRule is a rule and its path in the policy.
type policyRule struct {
	v1alpha1.Rule
	// kind is nil for a kind that this program does not know.
	*kind
	fldPath place
	// spokePaths and hubPaths are its paths as they are written, without those that are not paths.
	spokePaths, hubPaths []conversion.Path
}

// newRule reads the paths of a rule.
func newRule(rule v1alpha1.Rule, at place) *policyRule {
	spoke, hub := rule.Paths()
	return &policyRule{Rule: rule, kind: kinds[rule.Kind()], fldPath: at, spokePaths: parsed(spoke), hubPaths: parsed(hub)}
}

func parsed(texts []v1alpha1.Path) (paths []conversion.Path) {
	for _, text := range texts {
		if path, err := conversion.ParsePath(string(text)); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// leaves returns the verdicts on all leaf fields of both sides.
func (c *compiler) leaves() (leaves []FieldVerdict) {
	for _, ofHub := range []bool{false, true} {
		var own []FieldVerdict
		for _, f := range c.frames {
			own = append(own, f.leavesOf(ofHub)...)
		}
		slices.SortFunc(own, func(a, b FieldVerdict) int { return cmp.Compare(a.Path, b.Path) })
		leaves = append(leaves, slices.Compact(own)...)
	}
	return leaves
}

// leavesOf returns the verdicts on one side of a frame. Schemas do not name single keys of maps, labels,
// annotations, and fields of objects that allow anything. These are leaves if a rule names them on
// either side.
func (f *frame) leavesOf(ofHub bool) (leaves []FieldVerdict) {
	own, _ := f.sides(ofHub)
	repeated := f.repeated(ofHub)
	found := func(path conversion.Path) {
		claim := claimOf(own.claims, path)
		isPaired := claim != nil && f.frameOf(claim.rule) != nil // in a frame of its own
		if shown := own.shown(path); !isPaired && !slices.ContainsFunc(repeated, shown.HasPrefix) {
			leaves = append(leaves, f.leafVerdict(path, ofHub))
		}
	}
	owned := slices.Concat(own.preserved, own.partlyPreserved)
	for _, claim := range own.claims {
		if f.frameOf(claim.rule) == nil {
			owned = append(owned, claim.path)
		}
	}
	walker := leafWalker{side: own, owned: owned, found: found}
	walker.value(own.schema, nil)
	for _, path := range owned {
		switch s, err := own.resolve(path); {
		case err == nil && namesKey(own, path):
			walker.value(s, path)
		case err != nil:
			found(path)
		}
	}
	if f.collection.SpokeForm != f.collection.HubForm && f.collection.Key != "" && own.value.Items != nil {
		found(conversion.Path{f.collection.Key}) // the name in the map of the other version
	}
	return append(leaves, f.selectedKeys(leaves, ofHub)...)
}

// selectedKeys returns the verdicts on the keys of elements that rules select: an element is made with its key. leaves are
// the other ones.
func (f *frame) selectedKeys(leaves []FieldVerdict, ofHub bool) (keys []FieldVerdict) {
	own, _ := f.sides(ofHub)
	for _, claim := range own.claims {
		at := slices.IndexFunc(claim.path, conversion.IsSelector)
		if at < 0 {
			continue
		}
		leaf := f.leafVerdict(claim.path, ofHub)
		key, _, _ := tree.CutSelector(claim.path[at])
		leaf.Path = own.shown(append(slices.Clip(claim.path[:at+1]), key)).String()
		if !slices.ContainsFunc(slices.Concat(leaves, keys), func(other FieldVerdict) bool { return other.Path == leaf.Path }) {
			keys = append(keys, leaf)
		}
	}
	return keys
}

func (f *frame) leafVerdict(path conversion.Path, ofHub bool) FieldVerdict {
	own, _ := f.sides(ofHub)
	leaf := FieldVerdict{Spoke: f.spoke.version, Version: own.version, Path: own.shown(path).String(), Owner: OwnerExact}
	if len(path) == 0 {
		leaf.Path = f.name(ofHub).String()
	}
	if claim := claimOf(own.claims, path); claim != nil {
		leaf.Path, leaf.Rule, leaf.Root = own.shown(path).String(), claim.rule.fldPath.String(), own.shown(claim.path).String()
		leaf.Owner = claim.rule.owner()
		leaf.PartlyPreserved = claim.rule.stays(f.compiler, claim.rule, ofHub) || leaf.Owner == OwnerExact && f.staysIn(ofHub)
		return leaf
	}
	leaf.PartlyPreserved = contains(own.partlyPreserved, path) || f.staysIn(ofHub)
	for _, preserved := range own.preserved {
		if path.HasPrefix(preserved) {
			leaf.Owner, leaf.Root = OwnerPreserved, own.shown(preserved).String()
			leaf.PartlyPreserved = contains(own.partlyPreserved, path)
		}
	}
	if f.rule != nil && leaf.Owner == OwnerExact {
		leaf.Rule, leaf.Root = f.rule.fldPath.String(), f.name(ofHub).String()
	}
	return leaf
}

// claimOf returns the claim that covers a path, nil if there is none.
func claimOf(claims []claim, path conversion.Path) *claim {
	i := slices.IndexFunc(claims, func(c claim) bool { return path.HasPrefix(c.path) })
	if i < 0 {
		return nil
	}
	return &claims[i]
}

// derives reports whether the rule only computes the fields of one side.
func (r *policyRule) derives() bool {
	return r.CEL != nil && r.CEL.Derives()
}

// convertsValue reports whether the rule converts a value, so that it may be for elements as a whole.
func (r *policyRule) convertsValue() bool { return r.Each == nil && r.Default == nil && r.Drop == nil }

// drops reports whether what a client writes to the fields that belong to the rule is dropped.
func (r *policyRule) drops() bool { return r.Drop != nil || r.derives() }

func (r *policyRule) owner() Owner {
	switch {
	case r.drops():
		return OwnerDropped
	case r.Default != nil:
		return OwnerPreserved
	}
	return OwnerExact
}

// Verdict tells what the conversion between a spoke and the hub preserves.
type Verdict struct {
	// Version is the spoke.
	Version string
	// ToHub is the fidelity from the spoke to the hub, and FromHub that from the hub to the spoke.
	ToHub, FromHub v1alpha1.Fidelity
	// Preserved lists the first 20 fields that the other version lacks, and Dropped those that a
	// rule drops.
	Preserved, Dropped []VersionedField
}

// VersionedField is a field of one version.
type VersionedField struct {
	// Version has the field, and Path is its path, such as .spec.note; [*] stands for all elements
	// of a list or map.
	Version, Path string
}

// String is the version and the path, with a colon in between.
func (f VersionedField) String() string { return f.Version + ":" + f.Path }

// verdicts summarises the leaves by spoke. A field that is preserved or dropped as a whole is named
// once.
func verdicts(leaves []FieldVerdict) []Verdict {
	var all []Verdict
	for _, leaf := range leaves {
		if len(all) == 0 || all[len(all)-1].Version != leaf.Spoke {
			all = append(all, Verdict{Version: leaf.Spoke, ToHub: v1alpha1.FidelityExact, FromHub: v1alpha1.FidelityExact})
		}
		verdict := &all[len(all)-1]
		direction := &verdict.FromHub
		if leaf.Version == leaf.Spoke {
			direction = &verdict.ToHub
		}
		switch leaf.Owner {
		case OwnerDropped:
			*direction = v1alpha1.FidelityLossy
			verdict.Dropped = append(verdict.Dropped, VersionedField{Version: leaf.Version, Path: leaf.Root})
		case OwnerPreserved:
			if *direction == v1alpha1.FidelityExact {
				*direction = v1alpha1.FidelityPreserved
			}
			verdict.Preserved = append(verdict.Preserved, VersionedField{Version: leaf.Version, Path: leaf.Root})
		}
	}
	for i := range all {
		all[i].Preserved, all[i].Dropped = firstFields(all[i].Preserved), firstFields(all[i].Dropped)
	}
	return all
}

// maxFields limits the fields that a verdict names.
const maxFields = 20

// firstFields sorts and deduplicates fields, and returns the first maxFields.
func firstFields(fields []VersionedField) []VersionedField {
	slices.SortFunc(fields, func(a, b VersionedField) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path))
	})
	fields = slices.Compact(fields)
	return fields[:min(len(fields), maxFields)]
}

// checkFidelity returns an error if the leaves do not have the fidelity that the policy requires.
func checkFidelity(minimum v1alpha1.Fidelity, leaves []FieldVerdict) field.ErrorList {
	var preserved, dropped []string
	for _, leaf := range leaves {
		switch {
		case leaf.Owner == OwnerDropped && minimum != v1alpha1.FidelityLossy:
			dropped = append(dropped, fmt.Sprintf("%s:%s (%s)", leaf.Version, leaf.Root, shortRule(leaf.Rule)))
		case leaf.Owner == OwnerPreserved && minimum == v1alpha1.FidelityExact:
			preserved = append(preserved, leaf.Version+":"+leaf.Root)
		}
	}
	if minimum == "" || len(preserved)+len(dropped) == 0 {
		return nil
	}
	var messages []string
	lower := v1alpha1.FidelityLossy
	if len(preserved) > 0 {
		messages = append(messages, "preserved: "+few(preserved)+": write rules that give them a place in the other version")
	}
	if len(dropped) > 0 {
		messages = append(messages, "dropped: "+few(dropped)+": remove those rules, and the fields are preserved")
	} else {
		lower = v1alpha1.FidelityPreserved
	}
	return field.ErrorList{field.Invalid(declarativePath.Child("minimumFidelity"), minimum,
		strings.Join(messages, "; ")+"; or lower minimumFidelity to "+string(lower))}
}

// shortRule returns a rule's path without the prefix that all rules have in common.
func shortRule(rule string) string {
	return strings.TrimPrefix(rule, declarativePath.String()+".")
}

// fewItems is how many items a message lists before it counts the rest.
const fewItems = 5

// few lists the first items, sorted and deduplicated, and counts the others.
func few(items []string) string {
	items = slices.Clone(items)
	slices.Sort(items)
	items = slices.Compact(items)
	if more := len(items) - fewItems; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:fewItems], ", "), more)
	}
	return strings.Join(items, ", ")
}
