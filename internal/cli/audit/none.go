// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

const cureConvert = "convert between the versions (a ConversionPolicy with rules preserves such fields), make the schemas equal, or stop serving %s"

// noneBetween compares versions without a conversion. The API server then changes only
// apiVersion, and silently prunes fields that the other version lacks. Rules would
// preserve exactly those fields.
func noneBetween(o *Observed) []Finding {
	storage, inUse := crds.StorageVersion(o.CRD), crds.VersionsInUse(o.CRD)
	if crds.Strategy(o.CRD) != apiextensionsv1.NoneConverter || len(inUse) < 2 || o.unpruned() {
		return nil
	}
	var found []Finding
	for _, version := range inUse {
		if version != storage {
			found = append(found, o.noneWith(version, storage)...)
		}
	}
	return found
}

// unpruned reports whether the API server prunes nothing, whatever a schema lacks.
func (o *Observed) unpruned() bool {
	return o.CRD.Spec.PreserveUnknownFields || o.condition(apiextensionsv1.NonStructuralSchema, apiextensionsv1.ConditionTrue) != nil
}

// noneWith compares one version with the storage version.
func (o *Observed) noneWith(version, storage string) []Finding {
	result := compile.Compile(crds.Without(o.CRD, func(name string) bool { return name != version && name != storage }), &v1alpha1.DeclarativeConverter{Hub: v1alpha1.VersionName(storage)})
	if len(result.Errors) > 0 { // a schema in a file that no API server would accept
		return []Finding{o.certain(NonStructuralSchema, version, "there is no conversion, and the fields of the versions cannot be compared: "+result.Errors.ToAggregate().Error(), cureStructure)}
	}
	var dropped, hidden []string
	for _, leaf := range result.Leaves {
		switch {
		case leaf.Owner == compile.OwnerExact, conversion.Accepts(o.acceptedLosses(), leaf.Path):
		case leaf.Version == version:
			dropped = append(dropped, leaf.Root)
		default:
			hidden = append(hidden, leaf.Root)
		}
	}
	dropped, hidden = slices.Compact(dropped), slices.Compact(hidden)
	// Fields that both versions have, with incompatible types.
	inBoth := func(path string) bool { return slices.Contains(dropped, path) && slices.Contains(hidden, path) }
	differ := slices.DeleteFunc(slices.Clone(dropped), func(path string) bool { return !inBoth(path) })
	oneSided := func(paths []string) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return slices.Contains(differ, path) })
	}
	return slices.Concat(o.differsFrom(version, storage, differ), o.lostWith(version, storage, oneSided(dropped)), o.hiddenFrom(version, storage, oneSided(hidden)))
}

// acceptedLosses are the fields that the ConversionPolicy gives up by name.
func (o *Observed) acceptedLosses() []string {
	if o.Policy == nil {
		return nil
	}
	return o.Policy.Spec.Converter.AcceptedLosses()
}

// differsFrom reports fields with another type: clients receive unexpected values, and the
// schema refuses the values that they write.
func (o *Observed) differsFrom(version, storage string, fields []string) []Finding {
	return o.certain(NoneTypesDiffer, version,
		fmt.Sprintf("there is no conversion, and in %s the type of %s differs from the storage version %s: values written at one are invalid at the other: %s",
			version, terminal.Count(len(fields), "field"), storage, few(fields)),
		fmt.Sprintf(cureConvert, version)).of(fields)
}

// lostWith reports fields that clients can write at a version, but the API server does not store.
func (o *Observed) lostWith(version, storage string, fields []string) []Finding {
	lacks := fmt.Sprintf("there is no conversion, and the storage version %s lacks %s of %s", storage, terminal.Count(len(fields), "field"), version)
	if !crds.Serves(o.CRD, version) {
		return o.certain(NoneLosesFields, version,
			lacks+", in which objects may still be stored: a write of such an object drops them: "+few(fields),
			"convert before objects are written or migrated: a ConversionPolicy with rules preserves such fields").of(fields)
	}
	return o.certain(NoneLosesFields, version,
		lacks+": the API server silently drops values written to them: "+few(fields), fmt.Sprintf(cureConvert, version)).of(fields)
}

// hiddenFrom reports fields that clients of a version do not see, and drop when they replace
// an object.
func (o *Observed) hiddenFrom(version, storage string, fields []string) []Finding {
	if !crds.Serves(o.CRD, version) {
		return nil
	}
	return o.certain(NoneHidesFields, version,
		fmt.Sprintf("there is no conversion, and %s lacks %s of the storage version %s: a client that replaces an object at %s silently drops them: %s",
			version, terminal.Count(len(fields), "field"), storage, version, few(fields)),
		fmt.Sprintf(cureConvert, version)).of(fields)
}
