// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// observation is one observation of a subject, and its expected state.
type observation struct {
	Time    time.Time
	Subject subject
	// Objects are the writes of clients.
	Objects map[string]entry

	// Defined is set if the CRD exists, Active if it converts through the operator's converter, which
	// is the Service and the hash of the ruleset.
	Defined, Active  bool
	Service, Ruleset string
	UID              types.UID
	Generation       int64
	Storage          string
	// Has are the versions of the CRD, Serves and Deprecates subsets of them.
	Has, Serves, Deprecates []string
	// Conversion is spec.conversion, read last.
	Conversion *apiextensionsv1.CustomResourceConversion
	// Listed is status.storedVersions, read first; ListedAfter is the same, read last.
	Listed, ListedAfter []string
	Policy              *v1alpha1.ConversionPolicy
	Records             []contract.Record
	Children            []child
	// Stored are the versions of the bytes in etcd by name, Revisions the etcd revisions of the
	// last writes.
	Stored    map[string]string
	Revisions map[string]int64
	// Preserved are the values in annotations, by object, version and path.
	Preserved map[string]map[string]map[string]any
	// Pruned is what another client removed from status.storedVersions while objects were stored at
	// those versions.
	Pruned pruning
	// Reads are by version and name.
	Reads map[string]map[string]read
	Pods  []podObservation
	// Rulesets are the hashes of the stored rulesets of the policy, by the instance label of the
	// pods that mount them.
	Rulesets map[string][]string
	// Fleet is the fleet that the policy uses, if any, and Size the expected number of its pods.
	// Follow is set if no user of the fleet is suspended or abandoned.
	Fleet  *v1alpha1.ConverterFleet
	Size   int
	Follow bool
	// Mounted is the expiry of the certificate that pods mount; zero without one.
	Mounted time.Time
}

// read is the result of a client's read.
type read struct {
	Spec   map[string]any
	Labels map[string]string
	Err    string
}

// observe observes all subjects. An error means that a request failed.
func (p *player) observe(ctx context.Context) (map[string]observation, error) {
	all := map[string]observation{}
	for _, s := range p.subjects {
		now := observation{Time: time.Now(), Subject: s, Objects: p.ledger.all(s.Name), Pruned: p.pruned[s.Name]}
		before := &apiextensionsv1.CustomResourceDefinition{}
		defined, err := p.find(ctx, client.ObjectKey{Name: crdOf(s.Name)}, before)
		if err != nil {
			return nil, err
		}
		if now.Defined = defined; defined {
			now.UID, now.Generation, now.Listed = before.UID, before.Generation, before.Status.StoredVersions
			now.Storage, now.Active = crds.StorageVersion(before), converts(before)
			now.Service, now.Ruleset = namedBy(before)
			now.observeVersions(before)
		}
		// The policy is read before the bytes that its status describes.
		for _, look := range []func(context.Context, *observation) error{p.observePolicy, p.observeChildren, p.observeFleet, p.observeMounted, p.observeBytes, p.observeReads} {
			if err := look(ctx, &now); err != nil {
				return nil, fmt.Errorf("observe %s: %w", s.Name, err)
			}
		}
		if err := p.observePods(ctx, &now, before); err != nil {
			return nil, fmt.Errorf("observe converter pods of %s: %w", s.Name, err)
		}
		all[s.Name] = now
	}
	return all, nil
}

func (now *observation) observeVersions(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, version := range crd.Spec.Versions {
		now.Has = with(now.Has, version.Name)
		if version.Served {
			now.Serves = with(now.Serves, version.Name)
		}
		if version.Deprecated {
			now.Deprecates = with(now.Deprecates, version.Name)
		}
	}
}

// find reads an object that may not exist.
func (p *player) find(ctx context.Context, key client.ObjectKey, object client.Object) (bool, error) {
	err := p.cluster.Get(ctx, key, object)
	return err == nil, client.IgnoreNotFound(err)
}

// converts reports whether a CRD converts through the operator's converter.
func converts(crd *apiextensionsv1.CustomResourceDefinition) bool {
	service, _ := namedBy(crd)
	return service != ""
}

// webhookOf returns the conversion webhook of a CRD, or nil.
func webhookOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil {
		return nil
	}
	return crd.Spec.Conversion.Webhook.ClientConfig
}

func (p *player) observePolicy(ctx context.Context, now *observation) error {
	policy := &v1alpha1.ConversionPolicy{}
	found, err := p.find(ctx, client.ObjectKey{Name: crdOf(now.Subject.Name)}, policy)
	if found {
		now.Policy = policy
	}
	return err
}

// observeBytes reads etcd, and storedVersions after it.
func (p *player) observeBytes(ctx context.Context, now *observation) error {
	stored, err := scenarios.ReadStored(ctx, now.Subject.group(), "crontabs")
	if err != nil {
		return err
	}
	now.Stored, now.Revisions, now.Preserved = map[string]string{}, map[string]int64{}, map[string]map[string]map[string]any{}
	for key, text := range stored.Bytes {
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal([]byte(text), object); err != nil {
			return err
		}
		_, version, _ := strings.Cut(object.APIVersion, "/")
		name := strings.TrimPrefix(key, scenarios.Namespace+"/")
		now.Stored[name], now.Revisions[name] = version, stored.Revisions[key]
		if now.Preserved[name], err = preservedIn(object.Annotations, crdOf(now.Subject.Name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	after := &apiextensionsv1.CustomResourceDefinition{}
	if _, err := p.find(ctx, client.ObjectKey{Name: crdOf(now.Subject.Name)}, after); err != nil {
		return err
	}
	now.ListedAfter, now.Conversion = after.Status.StoredVersions, after.Spec.Conversion
	return nil
}

// preservedIn reads preserved values from annotations, by version and path. Values of this run are
// too short for compression.
func preservedIn(annotations map[string]string, crd string) (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	for version := range ownFields {
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

// readers is the number of concurrent reads.
const readers = 8

// observeReads lists and reads every object in every served version. If the list fails, it skips
// the other reads of that version.
func (p *player) observeReads(ctx context.Context, now *observation) error {
	now.Reads = map[string]map[string]read{}
	for _, version := range now.Subject.Served {
		all := sortedKeys(now.Objects)
		reads := make([]read, len(all))
		objects := p.objects(now.Subject.Name, version)
		list, err := objects.List(ctx, metav1.ListOptions{})
		switch {
		case err != nil:
			for i := range reads {
				reads[i].Err = err.Error()
			}
		case len(list.Items) != len(all):
			return fmt.Errorf("a list at %s has %d objects, want %d", version, len(list.Items), len(all))
		default:
			parallel := errgroup.Group{}
			parallel.SetLimit(readers)
			for i, name := range all {
				parallel.Go(func() error {
					object, err := objects.Get(ctx, name, metav1.GetOptions{})
					reads[i] = asRead(object, err)
					return nil
				})
			}
			_ = parallel.Wait()
		}
		now.Reads[version] = map[string]read{}
		for i, name := range all {
			now.Reads[version][name] = reads[i]
		}
	}
	return nil
}

func asRead(object *unstructured.Unstructured, err error) read {
	if err != nil {
		return read{Err: err.Error()}
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return read{Err: err.Error()}
	}
	return read{Spec: spec, Labels: object.GetLabels()}
}

// sortedRecords parses the records of migrations.
func sortedRecords(texts []string) ([]contract.Record, error) {
	var records []contract.Record
	for _, text := range slices.Sorted(slices.Values(texts)) {
		record, err := contract.ParseRecord([]byte(text))
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}
