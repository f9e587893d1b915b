// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// mostManagers bounds the memory for names of field managers, which clients choose.
const mostManagers = 1000

// Managers counts the field managers that wrote objects of the kind at versions that go.
type Managers struct {
	target *Target
	found  map[manager]*written
	// Others is the number of entries by managers beyond those that are named.
	Others int
}

type manager struct {
	name        string
	operation   metav1.ManagedFieldsOperationType
	subresource string
	version     string
}

type written struct {
	objects int
	first   Object
	last    time.Time
	// counted is the last object that was counted: several entries of one object count once.
	counted Object
}

// Managers returns an empty count.
func (t *Target) Managers() *Managers { return &Managers{target: t, found: map[manager]*written{}} }

// Add counts the field managers of one object of the kind.
func (m *Managers) Add(object Object, entries []metav1.ManagedFieldsEntry) {
	for _, entry := range entries {
		version, names := m.target.Names(entry.APIVersion, m.target.Kind)
		if !names {
			continue
		}
		key := manager{entry.Manager, entry.Operation, entry.Subresource, version}
		found := m.found[key]
		if found == nil && len(m.found) == mostManagers {
			m.Others++
			continue
		}
		if found == nil {
			found = &written{first: object}
			m.found[key] = found
		}
		if found.counted != object {
			found.objects, found.counted = found.objects+1, object
		}
		if entry.Time != nil && entry.Time.After(found.last) {
			found.last = entry.Time.Time
		}
	}
}

// Dependents returns one dependent for each field manager and version.
func (m *Managers) Dependents() []Dependent {
	var all []Dependent
	for key, found := range m.found {
		client := crds.FieldManager(key.name, key.operation, key.subresource)
		dependent := Dependent{
			Dependency: FieldManager, Impact: Breaks, Object: found.first, Client: client, Version: key.version, Count: found.objects,
			Field:  ".metadata.managedFields[*].apiVersion",
			Effect: "server-side apply of the object fails once the version is removed: request to convert CR to an invalid group/version",
			Cure: fmt.Sprintf("if the client still writes %s, move it to %s; the entries are removed by a retirement with the action Unserve or Remove",
				key.version, m.target.To),
		}
		if !found.last.IsZero() {
			dependent.Last = found.last.UTC().Format(time.RFC3339)
		}
		all = append(all, dependent)
	}
	Sort(all)
	return all
}
