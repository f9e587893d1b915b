// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// ApplyCRD creates or changes the CustomResourceDefinition, as an API server does if a client applies it
// without spec.conversion.
func (c *Cluster) ApplyCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Generation = int64(min(len(crd.Spec.Versions), 2)) // another version was added
	crd.UID = types.UID("uid-of-the-crd")
	crd.ResourceVersion = "of this write"
	if old := c.State.CRD; old != nil {
		crd.UID, crd.Generation = old.UID, old.Generation+1
		crd.OwnerReferences, crd.CreationTimestamp = old.OwnerReferences, old.CreationTimestamp
		crd.Spec.Conversion, crd.ManagedFields = old.Spec.Conversion, old.ManagedFields
		crd.Status.StoredVersions, crd.Status.Conditions = slices.Clone(old.Status.StoredVersions), old.Status.Conditions
	} else {
		crd.Status.Conditions = Established(c.State.Now)
	}
	addStored(crd)
	changed := c.State.CRD != nil && !equality.Semantic.DeepEqual(c.State.CRD.Spec.Versions, crd.Spec.Versions)
	c.State.CRD = crd
	if changed {
		c.VersionsBy = "kubectl"
		c.Account(c.VersionsBy)
	}
}

// addStored adds the storage version to status.storedVersions.
func addStored(crd *apiextensionsv1.CustomResourceDefinition) {
	if storage := crds.StorageVersion(crd); !slices.Contains(crd.Status.StoredVersions, storage) {
		crd.Status.StoredVersions = append(crd.Status.StoredVersions, storage)
	}
}

// Established are the conditions of a kind that API servers serve since then.
func Established(since time.Time) []apiextensionsv1.CustomResourceDefinitionCondition {
	return []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}}
}

// define carries out a step on the CustomResourceDefinition, or on the XRD from which Crossplane generates it.
func (c *Cluster) define(s step.Step) {
	state := c.State
	switch s := s.(type) {
	case step.SwitchCRD:
		c.convert(s.Pin, s.Conversion)
	case step.RestoreCRD:
		c.convert(s.Pin, nil)
	case step.AddStorageVersion:
		state.CRD.Status.StoredVersions = append(state.CRD.Status.StoredVersions, crds.StorageVersion(state.CRD))
	case step.PruneStoredVersions:
		if !slices.Contains(state.CRD.Status.StoredVersions, s.StorageVersion) {
			c.fail("config/rbac/confinement.yaml refuses to add %s to status.storedVersions", s.StorageVersion)
			return
		}
		state.CRD.Status.StoredVersions = []string{s.StorageVersion}
	case step.EditVersions:
		c.editVersions(s)
	}
}

// convert lets the operator write spec.conversion.
func (c *Cluster) convert(of step.Pin, conversion *apiextensionsv1.CustomResourceConversion) {
	if of.Composite.Empty() {
		c.Write(names.ManagedBy, conversion)
	} else {
		c.WriteComposite(names.ManagedBy, conversion)
	}
}

// editVersions changes spec.versions as the API server would.
func (c *Cluster) editVersions(s step.EditVersions) {
	versions := c.Versions()
	for _, change := range s.Changes {
		if versions[change.Index]["name"] != change.Name {
			c.fail("spec.versions[%d] is %v, and not %s", change.Index, versions[change.Index]["name"], change.Name)
		}
		switch {
		case change.Field == "":
			versions = slices.Delete(versions, change.Index, change.Index+1)
		case change.Value == nil:
			delete(versions[change.Index], change.Field)
		default:
			versions[change.Index][change.Field] = change.Value
		}
	}
	c.WriteVersions(names.ManagedBy, versions)
}

// Versions returns spec.versions, to change it.
func (c *Cluster) Versions() []map[string]any {
	text, err := json.Marshal(c.State.CRD.Spec.Versions)
	c.note(err)
	var versions []map[string]any
	c.note(json.Unmarshal(text, &versions))
	return versions
}

// WriteVersions lets a field manager write spec.versions.
func (c *Cluster) WriteVersions(manager string, versions []map[string]any) {
	text, err := json.Marshal(versions)
	c.note(err)
	crd := c.State.CRD.DeepCopy()
	crd.Spec.Versions = nil
	c.note(json.Unmarshal(text, &crd.Spec.Versions))
	addStored(crd)
	for _, stored := range crd.Status.StoredVersions {
		if there, _ := crds.Version(crd, stored); there == nil {
			c.fail("the API server refuses to remove %s: objects may be stored in it", stored)
		}
	}
	crd.Generation++
	c.State.CRD, c.VersionsBy = crd, manager
	c.Account(manager)
}

// Write lets a field manager write spec.conversion, and keeps metadata.managedFields as the API server does:
// a manager that changes a field owns it from then on, one that removes a field leaves nothing behind, and
// the operator, which applies, owns whatever it writes. Without a conversion, the API server fills in its default.
func (c *Cluster) Write(manager string, conversion *apiextensionsv1.CustomResourceConversion) {
	crd, conversion := c.State.CRD, cmp.Or(conversion, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
	before, after := c.fields(crd.Spec.Conversion), c.fields(conversion)
	owners := map[string]string{}
	for path, value := range after {
		owners[path] = c.Owners[path]
		if before[path] != value || manager == names.ManagedBy {
			owners[path] = manager
		}
	}
	if !maps.Equal(before, after) {
		crd.Generation++
	}
	c.Owners, crd.Spec.Conversion = owners, conversion
	c.Account(manager)
}

// Drop does what kubectl replace does with a manifest without spec.conversion.
func (c *Cluster) Drop(manager string) { c.Write(manager, nil) }

// Account writes metadata.managedFields; the latest writer has the latest time.
func (c *Cluster) Account(latest string) {
	owned := map[string][]string{}
	for path, owner := range c.Owners {
		owned[owner] = append(owned[owner], path)
	}
	c.State.CRD.ManagedFields = nil
	for _, owner := range slices.Sorted(maps.Keys(owned)) {
		entry := c.entry(owner, owned[owner])
		entry.Time = &metav1.Time{}
		if owner == latest {
			entry.Time.Time = c.State.Now
		}
		c.State.CRD.ManagedFields = append(c.State.CRD.ManagedFields, entry)
	}
	if c.VersionsBy != "" {
		c.State.CRD.ManagedFields = append(c.State.CRD.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: c.VersionsBy, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: c.State.Now},
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:versions":{}}}`)})
	}
}

// entry says in metadata.managedFields that a field manager owns fields of spec.conversion.
func (c *Cluster) entry(manager string, paths []string) metav1.ManagedFieldsEntry {
	owned := map[string]any{}
	for _, path := range paths {
		fields := owned
		for name := range strings.SplitSeq(path, "/") {
			if fields["f:"+name] == nil {
				fields["f:"+name] = map[string]any{}
			}
			fields = fields["f:"+name].(map[string]any)
		}
	}
	text, err := json.Marshal(map[string]any{"f:spec": map[string]any{"f:conversion": owned}})
	c.note(err)
	operation := metav1.ManagedFieldsOperationUpdate
	if manager == names.ManagedBy {
		operation = metav1.ManagedFieldsOperationApply
	}
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(string(text))}
}

// fields are the fields of a conversion by their paths.
func (c *Cluster) fields(conversion *apiextensionsv1.CustomResourceConversion) map[string]string {
	found := map[string]string{}
	if conversion == nil {
		return found
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(conversion)
	c.note(err)
	var walk func(prefix string, content map[string]any)
	walk = func(prefix string, content map[string]any) {
		for key, value := range content {
			if below, isMap := value.(map[string]any); isMap {
				walk(prefix+key+"/", below)
				continue
			}
			text, err := json.Marshal(value)
			c.note(err)
			found[prefix+key] = string(text)
		}
	}
	walk("", content)
	return found
}

// WriteComposite lets a field manager write spec.conversion of the XRD.
func (c *Cluster) WriteComposite(manager string, conversion *apiextensionsv1.CustomResourceConversion) {
	c.State.Composite.Spec.Conversion = conversion
	c.State.Composite.ManagedFields = []metav1.ManagedFieldsEntry{c.entry(manager, slices.Collect(maps.Keys(c.fields(conversion))))}
}
