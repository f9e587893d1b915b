// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

// headCount counts preserved data in the annotations of listed metadata. A nil headCount counts
// nothing: the converter has no rules.
type headCount struct {
	converter *conversion.Converter
	crd       *apiextensionsv1.CustomResourceDefinition
	held      observed.Held
	// ruleset is the hash of the rules. usable is true if the objects are listed at the storage
	// version: at another version, converters have already restored some values.
	ruleset string
	usable  bool
}

func newHeadCount(crd *apiextensionsv1.CustomResourceDefinition, rules *conversion.Ruleset) *headCount {
	if rules == nil {
		return nil
	}
	converter, err := conversion.NewConverter(rules)
	if err != nil {
		return nil
	}
	return &headCount{converter: converter, crd: crd, ruleset: rules.Hash()}
}

// begin starts a new count, for a list at a version.
func (c *headCount) begin(version string) {
	if c != nil {
		c.held, c.usable = observed.Held{CRD: c.crd.UID, Ruleset: c.ruleset, Since: time.Now()}, version == crds.StorageVersion(c.crd)
	}
}

// add counts one object, and returns it without annotations, which need not stay in memory.
func (c *headCount) add(head live.Head) live.Head {
	if c != nil {
		c.held.Add(head.String(), c.converter.PreservedIn(head.Annotations))
	}
	head.Annotations = nil
	return head
}

// end records whether the list was complete.
func (c *headCount) end(all bool) {
	if c != nil {
		c.held.All = all
	}
}

// counted returns the count, or nil if there is none or it is not usable. It is a copy: the result of a
// check stays in memory, and must not keep the converter and the CustomResourceDefinition there.
func (c *headCount) counted() *observed.Held {
	if c == nil || !c.usable {
		return nil
	}
	held := c.held
	return &held
}

// addObject counts one object of a metadata list.
func (c *headCount) addObject(object *metav1.PartialObjectMetadata) {
	c.add(live.Head{Namespace: object.Namespace, Name: object.Name, Annotations: object.Annotations})
}

// isTruncated reports whether an object was truncated at the version at which it was read.
func (c *headCount) isTruncated(object *metav1.PartialObjectMetadata, version string) bool {
	return c != nil && len(object.Annotations) > 0 && c.converter.OmittedBy(version, object.Annotations) != nil
}

// annotationChanges returns how an object's annotations have to change to discard the preserved
// values that may be lost with the removed version.
func (c *managedFieldsCleaner) annotationChanges(object *metav1.PartialObjectMetadata) (map[string]*string, error) {
	if c.count == nil || len(c.discard) == 0 {
		return nil, nil
	}
	return c.count.converter.WithoutPreserved(object.Annotations, c.version, c.discard)
}

// pointerNames escapes a name in a JSON Pointer.
var pointerNames = strings.NewReplacer("~", "~0", "/", "~1")

// discardPreserved changes an object's annotations, unless the object changed since it was read.
// The next pass handles a conflict.
func (c *managedFieldsCleaner) discardPreserved(ctx context.Context, object *metav1.PartialObjectMetadata, changes map[string]*string) error {
	var operations []map[string]any
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		operation := map[string]any{"op": "remove", "path": "/metadata/annotations/" + pointerNames.Replace(name)}
		if value := changes[name]; value != nil {
			operation["op"], operation["value"] = "add", *value
		}
		operations = append(operations, operation)
	}
	patch, err := json.Marshal(pinnedPatch(object.UID, object.ResourceVersion, operations...))
	if err != nil {
		return err
	}
	_, err = c.objectsIn(object.Namespace).Patch(ctx, object.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: names.ManagedBy})
	if err == nil {
		c.mu.Lock()
		c.discarded++
		c.mu.Unlock()
	}
	return c.countOutcome(ctx, object, err)
}
