// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// Observation is one observation of a subject, and its expected state.
type Observation struct {
	Time    time.Time
	Subject Subject
	// CRD and Policy are read first, and nil if they do not exist. ListedAfter is
	// status.storedVersions, and Conversion spec.conversion, read last.
	CRD         *apiextensionsv1.CustomResourceDefinition
	Policy      *v1alpha1.ConversionPolicy
	ListedAfter []string
	Conversion  *apiextensionsv1.CustomResourceConversion
	Records     []contract.Record
	Children    []child
	Stored      map[string]Stored
	// Pruned is what another client removed from status.storedVersions while objects were stored at
	// those versions.
	Pruned Pruning
	// Reads are by version and name.
	Reads map[string]map[string]read
	Pods  []podObservation
	// Rulesets are the hashes of the policy's stored rulesets, by the instance label of the ConfigMap.
	Rulesets map[string][]string
	// Fleet is the fleet that the policy uses, if any, and Size the expected number of its pods.
	// Follow is set if no user of the fleet is suspended or abandoned.
	Fleet  *v1alpha1.ConverterFleet
	Size   int
	Follow bool
	// Mounted is the expiry of the certificate that pods mount; zero without one.
	Mounted time.Time
}

// Stored is an object in etcd: the version of its bytes, the revision of their last write, and the values
// in annotations by version and path.
type Stored struct {
	Version   string
	Revision  int64
	Preserved map[string]map[string]any
}

// read is the result of a client's read.
type read struct {
	spec   map[string]any
	labels map[string]string
	err    string
}

// child is an object that the operator created for a subject.
type child struct {
	Kind, Name string
	// Run is the migration of the object, if any.
	Run string
	// Active is true for a Job with active pods.
	Active bool
}

func (c child) String() string { return c.Kind + " " + c.Name }

// podObservation is a converter pod, and the certificate that it serves.
type podObservation struct {
	Name     string
	Ready    bool
	NotAfter time.Time
	// Rulesets are the hashes of the rulesets that it serves.
	Rulesets []string
	// Unreachable is set if nothing connects to it. Refused is the error of a connection that verifies
	// the certificate by caBundle.
	Unreachable bool
	Refused     error
}

// Pruning records what another client removed from status.storedVersions: the versions, and the
// etcd revision of that change.
type Pruning struct {
	Revision int64
	Versions []string
}

// versions returns all versions of the CRD, those that it serves, and those that it deprecates.
func (now Observation) versions() (all, served, deprecated []string) {
	if now.CRD == nil {
		return nil, nil, nil
	}
	for _, version := range now.CRD.Spec.Versions {
		all = append(all, version.Name)
		if version.Served {
			served = append(served, version.Name)
		}
		if version.Deprecated {
			deprecated = append(deprecated, version.Name)
		}
	}
	return all, served, deprecated
}

// storage returns the storage version of the CRD, if there is one.
func (now Observation) storage() string {
	if now.CRD == nil {
		return ""
	}
	return crds.StorageVersion(now.CRD)
}

// sameCRD reports whether both observations have the same CRD.
func (now Observation) sameCRD(before Observation) bool {
	return now.CRD != nil && before.CRD != nil && now.CRD.UID == before.CRD.UID
}

// condition returns a condition of the policy; the zero value if there is none.
func (now Observation) condition(name string) metav1.Condition {
	if now.Policy != nil {
		if found := apimeta.FindStatusCondition(now.Policy.Status.Conditions, name); found != nil {
			return *found
		}
	}
	return metav1.Condition{}
}

// current reports whether the status of the policy is of its spec and of the CRD.
func (now Observation) current() bool {
	return now.Policy != nil && now.CRD != nil && now.Policy.Status.ObservedGeneration == now.Policy.Generation && now.ofCRD()
}

// ofCRD reports whether the status of the policy is of the CRD.
func (now Observation) ofCRD() bool {
	status := now.Policy.Status.CRD
	return now.CRD != nil && status != nil && status.UID == now.CRD.UID && status.Generation == now.CRD.Generation
}

// unlisted returns the objects that are stored at a version that status.storedVersions lists
// neither before nor after the read of etcd.
func (now Observation) unlisted() []string {
	if now.CRD == nil {
		return nil
	}
	return slices.DeleteFunc(sortedKeys(now.Stored), func(name string) bool {
		version := now.Stored[name].Version
		return slices.Contains(now.CRD.Status.StoredVersions, version) || slices.Contains(now.ListedAfter, version)
	})
}

// prunedByOthers reports whether another client pruned a version since the observation before.
func (now Observation) prunedByOthers(before Observation, version string) bool {
	return now.Pruned.Revision != before.Pruned.Revision && slices.Contains(now.Pruned.Versions, version)
}

// service returns the name of the Service of the pods that convert for a subject, which is also the
// instance label of these pods.
func (s *Subject) service() string {
	if s.Fleet != "" {
		return names.Fleet(s.Fleet)
	}
	return names.Child(crdOf(s.Name))
}

// webhookOf returns the conversion webhook of a CRD, or nil.
func webhookOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	if crd == nil || crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil {
		return nil
	}
	return crd.Spec.Conversion.Webhook.ClientConfig
}

// namedBy returns the Service of the operator that a CRD converts through, and the hash of the
// ruleset; empty if there is none.
func namedBy(crd *apiextensionsv1.CustomResourceDefinition) (service, hash string) {
	webhook := webhookOf(crd)
	if webhook == nil || webhook.Service == nil || webhook.Service.Path == nil {
		return "", ""
	}
	name := webhook.Service.Name
	if name != names.Child(crd.Name) && !slices.Contains(fleetNames, names.FleetOf(name)) {
		return "", ""
	}
	return name, path.Base(*webhook.Service.Path)
}

// preservedIn reads preserved values from annotations, by version and path. Values of this run are
// too short for compression.
func preservedIn(annotations map[string]string, crd string) (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	for _, version := range []string{joined, nested} {
		name := "conversion-operator.io/" + version + "." + crd
		value, found := annotations[name]
		if !found {
			continue
		}
		held := struct {
			Format int            `json:"format"`
			Fields map[string]any `json:"fields"`
		}{}
		decoder := json.NewDecoder(strings.NewReader(value))
		decoder.UseNumber()
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&held); err != nil || held.Format != 2 {
			return nil, fmt.Errorf("the annotation %s is %s, which is none of format 2 with fields alone: %w", name, value, err)
		}
		all[version] = map[string]any{}
		for pointer, value := range held.Fields {
			all[version][strings.ReplaceAll(pointer, "/", ".")] = value
		}
	}
	return all, nil
}
