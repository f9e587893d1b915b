// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"cmp"
	_ "embed" // for the manifests below
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
)

// The versions of a CRD. The hub comes first, and is never removed.
const (
	hub    = "v1beta1"
	joined = "v1"
	nested = "v2"
)

var (
	versions     = []string{hub, joined, nested}
	subjectNames = []string{"a", "b", "c"}
	fleetNames   = []string{"blue", "green"}
	// places are those of converter pods: pods of the policy's own, or a fleet.
	places = append([]string{""}, fleetNames...)

	//go:embed manifests/crd.yaml
	definitionManifest []byte
	//go:embed manifests/policy.yaml
	policyManifest []byte
)

// State is the expected state of the cluster by name, computed from the steps alone. Fleets exist all the time.
type State struct {
	Subjects map[string]*Subject
	Fleets   map[string]*v1alpha1.ConverterFleetSpec
}

// Subject is one CustomResourceDefinition and its policy.
type Subject struct {
	// Name is the first part of its group.
	Name string
	// CRD is what its authors want, without spec.conversion; if it does not exist, it has no versions.
	CRD apiextensionsv1.CustomResourceDefinition
	// Policy is the spec of the policy; nil if it does not exist.
	Policy *v1alpha1.ConversionPolicySpec
	// Fleet has the converter pods, also after the policy; empty for pods of its own.
	Fleet string
	// Objects are those that clients wrote.
	Objects map[string]record
}

type crdVersion = apiextensionsv1.CustomResourceDefinitionVersion

// newState has subjects that do not exist yet, and fleets.
func newState(subjects, fleets []string) State {
	state := State{map[string]*Subject{}, map[string]*v1alpha1.ConverterFleetSpec{}}
	for _, name := range subjects {
		state.Subjects[name] = &Subject{Name: name}
	}
	for _, name := range fleets {
		state.Fleets[name] = &v1alpha1.ConverterFleetSpec{Replicas: new(int32(3)),
			Certificates: &v1alpha1.Certificates{Type: v1alpha1.CertificatesSelfManaged, SelfManaged: &v1alpha1.SelfManagedCertificates{}}}
	}
	return state
}

func (is State) clone() State {
	is.Subjects, is.Fleets = maps.Clone(is.Subjects), maps.Clone(is.Fleets)
	for name, s := range is.Subjects {
		is.Subjects[name] = &Subject{name, *s.CRD.DeepCopy(), s.Policy.DeepCopy(), s.Fleet, maps.Clone(s.Objects)}
	}
	for name, fleet := range is.Fleets {
		is.Fleets[name] = fleet.DeepCopy()
	}
	return is
}

// follows reports whether all users of a fleet write their CRD and their rulesets.
func (is State) follows(fleet string) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Values(is.Subjects)), func(s *Subject) bool { return s.exists() && s.Fleet == fleet && !s.active() })
}

func groupOf(name string) string { return name + ".soak.example.com" }

// crdOf returns the name of the CRD, which is also the name of the policy.
func crdOf(name string) string { return "crontabs." + groupOf(name) }

// instanceOf returns the instance label of the converter pods of a fleet, or of a policy with pods of its
// own. It is also the name of their Deployment and their Service, and begins those of their Secrets.
func instanceOf(place string) string {
	if slices.Contains(fleetNames, place) {
		return names.Fleet(place)
	}
	return names.Child(crdOf(place))
}

func (s *Subject) instance() string { return instanceOf(cmp.Or(s.Fleet, s.Name)) }

func (s *Subject) exists() bool    { return len(s.CRD.Spec.Versions) > 0 }
func (s *Subject) hasPolicy() bool { return s.Policy != nil }
func (s *Subject) paused() bool    { return s.Policy != nil && s.Policy.Paused }

// active reports whether the policy exists and is not paused, migrates whether its migrations are not
// suspended either.
func (s *Subject) active() bool   { return s.Policy != nil && !s.Policy.Paused }
func (s *Subject) ownPods() bool  { return s.active() && s.Fleet == "" }
func (s *Subject) migrates() bool { return s.active() && !s.Policy.Migration.Suspend }

// version returns a version of the CRD, or nil.
func (s *Subject) version(name string) *crdVersion {
	is, _ := crds.Version(&s.CRD, name)
	return is
}

// served returns the names of the served versions.
func (s *Subject) served() []string { return crds.ServedVersions(&s.CRD) }

// Definition returns the CRD after its author changed the present one. By now, the author's manifest has the
// policy's changes of versions, with their deprecation warnings.
func (s *Subject) Definition(present *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd := s.CRD.DeepCopy()
	crd.Spec.Conversion = present.Spec.Conversion
	for i := range crd.Spec.Versions {
		is := &crd.Spec.Versions[i]
		if was, _ := crds.Version(present, is.Name); was != nil && is.Deprecated {
			is.DeprecationWarning = was.DeprecationWarning
		}
	}
	return crd
}

// begin creates the CRD with one version, and the policy.
func (s *Subject) begin(fleet string) {
	s.CRD, s.Objects = *parse(definitionManifest, &apiextensionsv1.CustomResourceDefinition{}), map[string]record{}
	s.CRD.Name, s.CRD.Spec.Group, s.CRD.Spec.Versions = crdOf(s.Name), groupOf(s.Name), nil
	s.add(hub)
	s.store(hub)
	s.adopt(fleet)
}

// adopt creates the policy.
func (s *Subject) adopt(fleet string) {
	s.Policy = &parse(policyManifest, &v1alpha1.ConversionPolicy{}).Spec
	s.move(fleet)
}

// parse adds what a text has to an object.
func parse[T any](text []byte, object *T) *T {
	if err := yaml.UnmarshalStrict(text, object); err != nil {
		panic(err) // it is part of the program
	}
	return object
}

// move changes where the policy has its converter pods.
func (s *Subject) move(fleet string) {
	s.Fleet, s.Policy.Certificates = fleet, v1alpha1.Certificates{}
	s.Policy.Workload = &v1alpha1.Workload{Type: v1alpha1.WorkloadFleet, Fleet: &v1alpha1.FleetWorkload{Name: v1alpha1.FleetName(fleet)}}
	if fleet == "" {
		s.Policy.Workload = &v1alpha1.Workload{Type: v1alpha1.WorkloadDedicated, Dedicated: &v1alpha1.ConverterPods{}}
		s.Policy.Certificates = v1alpha1.Certificates{Type: v1alpha1.CertificatesSelfManaged, SelfManaged: &v1alpha1.SelfManagedCertificates{}}
	}
}

// add adds a version, which is served.
func (s *Subject) add(name string) {
	added, _ := crds.Version(parse(definitionManifest, &apiextensionsv1.CustomResourceDefinition{}), name)
	added.Served = true
	s.CRD.Spec.Versions = append(s.CRD.Spec.Versions, *added)
}

// store changes the storage version.
func (s *Subject) store(name string) {
	for i := range s.CRD.Spec.Versions {
		is := &s.CRD.Spec.Versions[i]
		is.Storage = is.Name == name
	}
}

// remove removes a version. Annotations hold what only it can express until the policy drops that: the version may
// come back.
func (s *Subject) remove(name string) {
	s.CRD.Spec.Versions = slices.DeleteFunc(s.CRD.Spec.Versions, func(is crdVersion) bool { return is.Name == name })
}

// retirement returns how the policy retires a version; the zero value if it does not.
func (s *Subject) retirement(name string) v1alpha1.Retirement {
	for _, is := range cmp.Or(s.Policy, &v1alpha1.ConversionPolicySpec{}).Retirement {
		if string(is.Version) == name {
			return is
		}
	}
	return v1alpha1.Retirement{}
}

// forgetRetirement removes a version from spec.retirement.
func (s *Subject) forgetRetirement(name string) {
	s.Policy.Retirement = slices.DeleteFunc(s.Policy.Retirement, func(is v1alpha1.Retirement) bool { return string(is.Version) == name })
}

// retire applies a retirement action, such as "v1 to Unserve", without a soak time: each includes the lesser ones, and
// reverts the greater ones. A version with values that would be lost is not removed, and still served if it was.
func (s *Subject) retire(variant string) {
	name, text, _ := strings.Cut(variant, " to ")
	text, accepts := strings.CutSuffix(text, accepting)
	action := v1alpha1.RetirementAction(text)
	s.forgetRetirement(name)
	retirement := v1alpha1.Retirement{Version: v1alpha1.VersionName(name), Action: action, After: &metav1.Duration{}}
	if accepts {
		retirement.AcceptedLosses = []string{ownPath(name)}
	}
	s.Policy.Retirement = append(s.Policy.Retirement, retirement)
	is := s.version(name)
	is.Deprecated = action != v1alpha1.RetirementKeep
	switch {
	case action != v1alpha1.RetirementRemove:
		is.Served = action != v1alpha1.RetirementUnserve
	case s.blocker(name) == "":
		s.remove(name)
		for key, object := range s.Objects {
			s.Objects[key] = maps.Clone(object)
			delete(s.Objects[key], ownFields[name])
		}
	}
}

// blocker returns an object that keeps a version from being removed, because of a value that would be lost.
func (s *Subject) blocker(name string) string {
	is := s.retirement(name)
	if is.Action == v1alpha1.RetirementRemove && len(is.AcceptedLosses) == 0 && s.version(name) != nil {
		for _, object := range slices.Sorted(maps.Keys(s.Objects)) {
			if s.Objects[object][ownFields[name]] != nil {
				return object
			}
		}
	}
	return ""
}

// record is the content of an object, independent of versions: "hostPort", which is "host:port", "replicas", and the
// fields that only one version has; nil for an absent field.
type record map[string]any

// ownFields are the fields of the spec that only one version has. Objects that are stored at another
// version preserve them in an annotation.
var ownFields = map[string]string{hub: "tags", joined: "note", nested: "timeoutSeconds"}

func ownPath(version string) string { return ".spec." + ownFields[version] }

// spec returns the record as an object's spec at a version, without the operator's code.
func (r record) spec(version string) map[string]any {
	hostPort, _ := r["hostPort"].(string)
	host, port, _ := strings.Cut(hostPort, ":")
	spec := map[string]map[string]any{
		hub:    {"host": host, "port": port, "replicas": r["replicas"], "tags": r["tags"]},
		joined: {"hostPort": hostPort, "replicas": r["replicas"], "note": r["note"]},
		nested: {"address": map[string]any{"host": host, "port": port}, "size": r["replicas"], "timeoutSeconds": r["timeoutSeconds"]},
	}[version]
	maps.DeleteFunc(spec, func(_ string, value any) bool { return value == nil })
	return spec
}

// preserved returns the annotation with the values of a version; nil if it has none.
func (r record) preserved(version string) map[string]any {
	own := ownFields[version]
	if r[own] == nil {
		return nil
	}
	return map[string]any{"format": int64(preserve.Format), "hidden": map[string]any{"/spec/" + own: r[own]}}
}

// overwritten returns the record after a client replaced it at a version. Fields that this version
// does not have keep their values.
func (r record) overwritten(version string, by record) record {
	is := record{}
	maps.Copy(is, r)
	for _, field := range []string{"hostPort", "replicas", ownFields[version]} {
		is[field] = by[field]
	}
	return is
}

func randomRecord(random *rand.Rand) record {
	r := record{
		"hostPort":       fmt.Sprintf("host-%d%s.example.com:%d", random.IntN(100), strings.Repeat("-long", random.IntN(2)*random.IntN(10_000)), 1+random.IntN(65535)),
		"replicas":       1 + random.Int64N(3),
		"note":           fmt.Sprintf("note %d: ü, \"quotes\" and / slashes ~", random.IntN(1000)),
		"tags":           []any{"tag", fmt.Sprintf("tag-%d", random.IntN(10))}[random.IntN(2):],
		"timeoutSeconds": 1<<53 + 1 + random.Int64N(1000), // more than a float64 can tell apart
	}
	for _, optional := range []string{"replicas", "note", "tags", "timeoutSeconds"} {
		if random.IntN(2) == 0 {
			delete(r, optional)
		}
	}
	return r
}
