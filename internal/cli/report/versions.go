// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// version is a version of the CustomResourceDefinition.
type version struct {
	Name string
	// Hub marks the hub.
	Hub, Served, Storage, Deprecated bool
	// Stored is Yes, No, or empty if the CustomResourceDefinition is a manifest, which
	// has no stored versions.
	Stored string
	// Status is the policy's status of the version, or nil.
	Status *v1alpha1.VersionStatus
}

// edge connects a spoke and the hub.
type edge struct {
	Spoke version
	Hub   string
	// To leads to the hub, and From back.
	To, From direction
}

// direction describes what happens to a version's fields in another one.
type direction struct {
	From, To string
	// Fidelity is empty if there are no rules.
	Fidelity v1alpha1.Fidelity
	// Exact, Preserved and Dropped count the fields.
	Exact, Preserved, Dropped int
	// PreservedPaths and DroppedPaths are preserved or dropped as a whole.
	PreservedPaths, DroppedPaths []string
}

func (p *page) versions(in Input) {
	hub := ""
	if declarative := in.Policy.Spec.Converter.Declarative; declarative != nil {
		hub = string(declarative.Hub)
	}
	for _, of := range crds.ByPriority(in.CRD) {
		v := version{Name: of.Name, Hub: of.Name == hub, Served: of.Served, Storage: of.Storage, Deprecated: of.Deprecated}
		if stored := in.CRD.Status.StoredVersions; len(stored) > 0 {
			v.Stored = map[bool]string{true: "Yes", false: "No"}[slices.Contains(stored, of.Name)]
		}
		if i := slices.IndexFunc(in.Policy.Status.Versions, func(s v1alpha1.VersionStatus) bool { return s.Name == of.Name }); i >= 0 {
			v.Status = &in.Policy.Status.Versions[i]
		}
		p.Versions = append(p.Versions, v)
	}
	for i := range p.Versions {
		if p.Versions[i].Hub {
			p.Hub = &p.Versions[i]
		}
	}
	if p.Hub == nil {
		return
	}
	for _, v := range p.Versions {
		if !v.Hub {
			p.Graph = append(p.Graph, edge{Spoke: v, Hub: hub, To: direction{From: v.Name, To: hub}, From: direction{From: hub, To: v.Name}})
		}
	}
}

// verdicts fills in the verdicts of the rules.
func (p *page) verdicts(result compile.Result) {
	for i := range p.Graph {
		e := &p.Graph[i]
		for _, verdict := range result.Verdicts {
			if verdict.Version == e.Spoke.Name {
				e.To.Fidelity, e.From.Fidelity = verdict.ToHub, verdict.FromHub
			}
		}
		for _, leaf := range result.Leaves {
			switch {
			case leaf.Spoke != e.Spoke.Name:
			case leaf.Version == leaf.Spoke:
				e.To.add(leaf)
			default:
				e.From.add(leaf)
			}
		}
	}
}

func (d *direction) add(leaf compile.FieldVerdict) {
	switch leaf.Owner {
	case compile.OwnerExact:
		d.Exact++
	case compile.OwnerPreserved:
		d.Preserved++
		d.PreservedPaths = addOnce(d.PreservedPaths, leaf.Root)
	case compile.OwnerDropped:
		d.Dropped++
		d.DroppedPaths = addOnce(d.DroppedPaths, leaf.Root)
	}
}

func addOnce(paths []string, path string) []string {
	if slices.Contains(paths, path) {
		return paths
	}
	return append(paths, path)
}

// HasStatus reports whether the policy's status describes the versions.
func (p *page) HasStatus() bool {
	return slices.ContainsFunc(p.Versions, func(v version) bool { return v.Status != nil })
}
