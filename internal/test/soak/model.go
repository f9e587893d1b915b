// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	_ "embed"
	"maps"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// model is the expected state of the cluster, computed from the steps alone.
type model struct {
	Subjects []*Subject
	// Fleets exist all the time.
	Fleets []*fleet
	// Idle is set if the previous step was waited for, so that nothing changes any more.
	Idle bool
}

// Subject is one CustomResourceDefinition and its policy.
type Subject struct {
	// Name is the first part of its group.
	Name string
	// Exists is set if the CRD exists, Policy if the policy exists.
	Exists, Policy bool
	// Versions are the versions of the CRD, Served and Deprecated subsets of them.
	Versions, Served, Deprecated []string
	Storage                      string
	// Fleet has the converter pods of the policy; empty for pods of its own.
	Fleet string
	settings
	// Accepts are the acceptedLosses by version. Blocked are the versions whose removal is blocked,
	// with the object whose value would be lost.
	Accepts map[string][]string
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

// settings are fields of the policy.
type settings struct {
	// MigrationsSuspended is set if only migrations are suspended, Suspended if the policy is.
	MigrationsSuspended, Suspended bool
	// Wanted is spec.storageVersion of the policy, Retires its spec.retirement.
	Wanted            string
	Retires           map[string]v1alpha1.RetirementAction
	Verify            v1alpha1.MigrationVerification
	Overflow          v1alpha1.OverflowAction
	Slow, OftenRenews bool
	Replicas          int32
	// Trigger is that of migrations, Rotation that of the authority.
	Trigger, Rotation string
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
		m.Fleets = append(m.Fleets, &fleet{Name: name, Replicas: replicasAtFirst})
	}
	for _, name := range subjects {
		m.Subjects = append(m.Subjects, &Subject{Name: name})
	}
	return m
}

func (m *model) subject(name string) *Subject {
	return m.Subjects[slices.IndexFunc(m.Subjects, func(s *Subject) bool { return s.Name == name })]
}

func (m *model) fleet(name string) *fleet {
	return m.Fleets[slices.IndexFunc(m.Fleets, func(f *fleet) bool { return f.Name == name })]
}

// users returns the subjects that use a fleet, also without a policy.
func (m *model) users(fleet string) []*Subject {
	return slices.DeleteFunc(slices.Clone(m.Subjects), func(s *Subject) bool { return !s.Exists || s.Fleet != fleet })
}

// subjects returns copies of all subjects.
func (m *model) subjects() []Subject {
	var all []Subject
	for _, s := range m.Subjects {
		copied := *s
		copied.Retires, copied.Accepts, copied.Blocked = maps.Clone(s.Retires), maps.Clone(s.Accepts), maps.Clone(s.Blocked)
		copied.Objects = maps.Clone(s.Objects)
		all = append(all, copied)
	}
	return all
}

// becomeIdle applies a wait until nothing changes any more.
func (m *model) becomeIdle() {
	m.Idle = true
	for _, s := range m.Subjects {
		s.Unsettled = false
		s.Behind = s.Behind && (!s.active() || s.MigrationsSuspended)
	}
}

// active reports whether the policy exists and is not suspended.
func (s *Subject) active() bool { return s.Policy && !s.Suspended }

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

// blocker returns an object with a value that would be lost with the version, if there is one.
func (s *Subject) blocker(version string, accepted []string) string {
	for _, name := range sortedKeys(s.Objects) {
		if len(s.Objects[name].wouldLose(version, accepted)) > 0 {
			return name
		}
	}
	return ""
}

// retire applies a retirement action: each includes the lesser ones, and reverts the greater ones. A
// version is removed with the accepted losses. If an object has another value that would be lost, the
// version stays, and is still served if it was.
func (s *Subject) retire(version string, action v1alpha1.RetirementAction, accepted []string) {
	wasServed := slices.Contains(s.Served, version)
	s.Retires, s.Accepts = set(s.Retires, version, action), set(s.Accepts, version, accepted)
	delete(s.Blocked, version)
	s.Deprecated, s.Served = without(s.Deprecated, version), without(s.Served, version)
	blocker := s.blocker(version, accepted)
	removes := action == v1alpha1.RetirementRemove
	if removes && blocker == "" {
		s.Versions = without(s.Versions, version)
		for name, object := range s.Objects {
			object.record = object.without(version, accepted)
			s.Objects[name] = object
		}
		return
	}
	if removes {
		s.Blocked = set(s.Blocked, version, blocker)
	}
	if action != v1alpha1.RetirementReport {
		s.Deprecated = with(s.Deprecated, version)
	}
	if action == v1alpha1.RetirementReport || action == v1alpha1.RetirementDeprecate || removes && wasServed {
		s.Served = with(s.Served, version)
	}
}

// set adds an entry to a map, which may be nil.
func set[V any](all map[string]V, key string, value V) map[string]V {
	if all == nil {
		all = map[string]V{}
	}
	all[key] = value
	return all
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
// changes of versions, with these deprecation warnings.
func (s *Subject) Definition(warnings map[string]*string) (*apiextensionsv1.CustomResourceDefinition, error) {
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
		if version.Deprecated = slices.Contains(s.Deprecated, version.Name); version.Deprecated {
			version.DeprecationWarning = warnings[version.Name]
		}
	}
	return crd, nil
}

// PolicySpec returns the spec of the policy, without a soak time between the actions of a retirement.
func (s *Subject) PolicySpec() (v1alpha1.ConversionPolicySpec, error) {
	policy := &v1alpha1.ConversionPolicy{}
	err := yaml.UnmarshalStrict(policyManifest, policy)
	spec := policy.Spec
	spec.Suspend, spec.StorageVersion = s.Suspended, v1alpha1.VersionName(s.Wanted)
	spec.Migration.Suspend, spec.Migration.Verify, spec.Migration.Trigger = s.MigrationsSuspended, s.Verify, s.Trigger
	if s.Slow {
		spec.Migration.MaxWritesPerSecond = new(int32(10))
	}
	if err == nil {
		spec.Converter.Declarative.Overflow = s.Overflow
	}
	for _, version := range sortedKeys(s.Retires) {
		spec.Retirement = append(spec.Retirement, v1alpha1.Retirement{Version: v1alpha1.VersionName(version), Action: s.Retires[version],
			After: &metav1.Duration{}, AcceptedLosses: s.Accepts[version]})
	}
	if spec.ConverterFleetName = v1alpha1.FleetName(s.Fleet); s.Fleet != "" {
		return spec, err
	}
	spec.Workload = &v1alpha1.Workload{}
	if s.Replicas > 0 {
		spec.Workload.Replicas = &s.Replicas
	}
	spec.Certificates.SelfManaged = &v1alpha1.SelfManagedCertificates{RotationTrigger: s.Rotation}
	if s.OftenRenews {
		spec.Certificates.SelfManaged.Duration = &metav1.Duration{Duration: time.Hour}
	}
	return spec, err
}
