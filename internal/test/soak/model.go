// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	_ "embed" // for the manifests below
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// model is the expected state of the cluster, computed from the steps alone.
type model struct {
	Subjects []*Subject
	// Fleets exist all the time.
	Fleets []fleet
	// Idle is set if the previous step was waited for, so that nothing changes any more.
	Idle bool
}

// Subject is one CustomResourceDefinition and its policy.
type Subject struct {
	// Name is the first part of its group.
	Name string
	// Exists is set if the CRD exists. Policy is the spec of the policy; nil without one.
	Exists bool
	Policy *v1alpha1.ConversionPolicySpec
	// Versions are the versions of the CRD, Served and Deprecated subsets of them.
	Versions, Served, Deprecated []string
	Storage                      string
	// Fleet has the converter pods, also after the policy; empty for pods of its own.
	Fleet string
	// Blocked are the versions whose removal is blocked, with the object whose value would be lost.
	Blocked map[string]string
	// Objects are those that clients wrote.
	Objects map[string]Object
	// Unsettled is set if the operator has pending work that a suspended policy would stop, and
	// without which the model cannot predict the cluster.
	Unsettled bool
	// Behind is set if objects may be stored at another version than the storage version.
	Behind bool
	// Overwrites counts overwrites of spec.conversion since the last change of the policy: the
	// operator reverts at most five in ten minutes.
	Overwrites int
}

// Object is the expected content of an object.
type Object struct {
	record
	Labels map[string]string
	// WrittenAt is the version of the last write.
	WrittenAt string
}

// fleet is the expected state of a ConverterFleet.
type fleet struct {
	Name     string
	Replicas int32
	Rotation string
}

var (
	subjectNames = []string{"a", "b", "c"}
	fleetNames   = []string{"blue", "green"}
)

// replicasAtFirst is the number of pods of a new fleet, and replicasAtMost of any.
const replicasAtFirst, replicasAtMost = 3, 4

func newModel(subjects ...string) *model {
	m := &model{Idle: true}
	for _, name := range fleetNames {
		m.Fleets = append(m.Fleets, fleet{Name: name, Replicas: replicasAtFirst})
	}
	for _, name := range subjects {
		m.Subjects = append(m.Subjects, &Subject{Name: name})
	}
	return m
}

func (m *model) subject(name string) *Subject {
	return m.Subjects[slices.IndexFunc(m.Subjects, func(s *Subject) bool { return s.Name == name })]
}

func (m *model) fleet(name string) *fleet { return &m.Fleets[slices.Index(fleetNames, name)] }

// users returns the subjects that use a fleet, also without a policy.
func (m *model) users(fleet string) []*Subject {
	return slices.DeleteFunc(slices.Clone(m.Subjects), func(s *Subject) bool { return !s.Exists || s.Fleet != fleet })
}

// subjects returns copies of all subjects.
func (m *model) subjects() []Subject {
	var all []Subject
	for _, s := range m.Subjects {
		copied := *s
		copied.Policy, copied.Blocked, copied.Objects = s.Policy.DeepCopy(), maps.Clone(s.Blocked), maps.Clone(s.Objects)
		all = append(all, copied)
	}
	return all
}

// becomeIdle applies a wait until nothing changes any more.
func (m *model) becomeIdle() {
	m.Idle = true
	for _, s := range m.Subjects {
		s.Unsettled = false
		s.Behind = s.Behind && !s.migrates()
	}
}

func (s *Subject) suspended() bool { return s.Policy != nil && s.Policy.Suspend }

// active reports whether the policy exists and is not suspended, migrates whether its migrations are not
// suspended either.
func (s *Subject) active() bool   { return s.Policy != nil && !s.Policy.Suspend }
func (s *Subject) migrates() bool { return s.active() && !s.Policy.Migration.Suspend }

func groupOf(name string) string { return name + ".soak.example.com" }

// crdOf returns the name of the CRD, which is also the name of the policy.
func crdOf(name string) string { return "crontabs." + groupOf(name) }

// blocksRemoval reports whether an object blocks the removal of a version.
func (s *Subject) blocksRemoval(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(s.Blocked)), name)
}

// write applies a client's write.
func (s *Subject) write(w Write) {
	object, exists := s.Objects[w.Name]
	switch {
	case w.Do == putObject:
		object.record, object.WrittenAt = object.overwritten(w.Version, w.record), w.Version
		s.Objects = set(s.Objects, w.Name, object)
	case w.Do == deleteObject:
		delete(s.Objects, w.Name)
	case exists:
		object.Labels = set(maps.Clone(object.Labels), w.label(), "in-"+w.Version)
		s.Objects[w.Name] = object
	}
}

// retirement returns how the policy retires a version; the zero value if it does not.
func (s *Subject) retirement(version string) v1alpha1.Retirement {
	if s.Policy == nil {
		return v1alpha1.Retirement{}
	}
	at := slices.IndexFunc(s.Policy.Retirement, func(each v1alpha1.Retirement) bool { return string(each.Version) == version })
	if at < 0 {
		return v1alpha1.Retirement{}
	}
	return s.Policy.Retirement[at]
}

// forgetRetirement removes a version from spec.retirement.
func (s *Subject) forgetRetirement(version string) {
	s.Policy.Retirement = slices.DeleteFunc(s.Policy.Retirement, func(each v1alpha1.Retirement) bool { return string(each.Version) == version })
}

// retire applies a retirement action, without a soak time: each includes the lesser ones, and reverts the
// greater ones. A version is removed with the accepted losses. If an object has another value that would
// be lost, the version stays, and is still served if it was.
func (s *Subject) retire(version string, action v1alpha1.RetirementAction, accepted []string) {
	s.forgetRetirement(version)
	s.Policy.Retirement = append(s.Policy.Retirement, v1alpha1.Retirement{
		Version: v1alpha1.VersionName(version), Action: action, After: &metav1.Duration{}, AcceptedLosses: accepted})
	slices.SortFunc(s.Policy.Retirement, func(a, b v1alpha1.Retirement) int { return strings.Compare(string(a.Version), string(b.Version)) })
	wasServed, removes := slices.Contains(s.Served, version), action == v1alpha1.RetirementRemove
	delete(s.Blocked, version)
	s.Deprecated, s.Served = without(s.Deprecated, version), without(s.Served, version)
	if removes {
		names := sortedKeys(s.Objects)
		blocker := slices.IndexFunc(names, func(name string) bool { return len(s.Objects[name].wouldLose(version, accepted)) > 0 })
		if blocker < 0 {
			s.remove(version)
			return
		}
		s.Blocked = set(s.Blocked, version, names[blocker])
	}
	if action != v1alpha1.RetirementReport {
		s.Deprecated = with(s.Deprecated, version)
	}
	if action == v1alpha1.RetirementReport || action == v1alpha1.RetirementDeprecate || removes && wasServed {
		s.Served = with(s.Served, version)
	}
}

// remove removes a retired version, and what only it can express.
func (s *Subject) remove(version string) {
	s.Versions = without(s.Versions, version)
	for name, object := range s.Objects {
		object.record = object.with(version, nil)
		s.Objects[name] = object
	}
}

// with adds a version to a set of versions, which has the order of the CRD.
func with(set []string, version string) []string {
	return slices.DeleteFunc(slices.Clone(versions), func(each string) bool { return each != version && !slices.Contains(set, each) })
}

func without(all []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(each string) bool { return slices.Contains(some, each) })
}

var (
	//go:embed manifests/crd.yaml
	definitionManifest []byte
	//go:embed manifests/policy.yaml
	policyManifest []byte
)

// Definition returns the CRD without spec.conversion. By now, the author's manifest has the policy's
// changes of versions, with the deprecation warnings of the present CRD, if there is one.
func (s *Subject) Definition(present *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definitionManifest, crd); err != nil {
		return nil, err
	}
	crd.Name, crd.Spec.Group = crdOf(s.Name), groupOf(s.Name)
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !slices.Contains(s.Versions, version.Name)
	})
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		version.Served, version.Storage = slices.Contains(s.Served, version.Name), version.Name == s.Storage
		version.Deprecated = slices.Contains(s.Deprecated, version.Name)
		if present == nil || !version.Deprecated {
			continue
		}
		if was, _ := crds.Version(present, version.Name); was != nil {
			version.DeprecationWarning = was.DeprecationWarning
		}
	}
	return crd, nil
}

// adopt creates the policy.
func (s *Subject) adopt() {
	policy := &v1alpha1.ConversionPolicy{}
	if err := yaml.UnmarshalStrict(policyManifest, policy); err != nil {
		panic(err) // it is embedded
	}
	s.Policy = &policy.Spec
	s.move(s.Fleet)
}

// move changes where the policy has its converter pods.
func (s *Subject) move(fleet string) {
	s.Fleet, s.Policy.ConverterFleetName = fleet, v1alpha1.FleetName(fleet)
	s.Policy.Workload, s.Policy.Certificates = nil, v1alpha1.Certificates{}
	if fleet == "" {
		s.Policy.Workload = &v1alpha1.Workload{}
		s.Policy.Certificates.SelfManaged = &v1alpha1.SelfManagedCertificates{}
	}
}
