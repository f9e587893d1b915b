// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
)

// recorded is a release of Helm with the revisions that Helm reads for the next change: the last
// one, and the one that is deployed.
type recorded struct{ last, deployed revision }

type revision struct {
	number          int
	namespace, name string
}

// helm reads the records of Helm releases. It fails if a repair cannot be recorded.
func (s *search) helm(ctx context.Context) error {
	if !s.Helm {
		s.report.Skipped = append(s.report.Skipped, "release records of Helm: add --helm, which reads Secrets")
		return nil
	}
	for _, driver := range []struct{ resource, kind string }{{"secrets", "Secret"}, {"configmaps", "ConfigMap"}} {
		resource := resource{corev1.SchemeGroupVersion.WithResource(driver.resource), driver.kind, true}
		releases, err := s.releases(ctx, resource.GroupVersionResource)
		if err != nil {
			s.notChecked("release records of Helm in "+driver.resource, err)
			continue
		}
		for _, release := range releases {
			revisions := []revision{release.last}
			if release.deployed.number != 0 && release.deployed.number != release.last.number {
				revisions = append(revisions, release.deployed)
			}
			for _, revision := range revisions {
				if err := s.readRecord(ctx, resource, revision); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// releases reads only the labels of records, by which Helm finds them.
func (s *search) releases(ctx context.Context, resource schema.GroupVersionResource) (map[string]*recorded, error) {
	found := map[string]*recorded{}
	err := eachPage(ctx, s.PageSize, func(ctx context.Context, options metav1.ListOptions) (*metav1.ListMeta, error) {
		s.Progress("release records of Helm", s.report.Cost.Objects)
		options.LabelSelector = "owner=helm"
		page, err := s.metadata.Resource(resource).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for _, record := range page.Items {
			number, err := strconv.Atoi(record.Labels["version"])
			if err != nil {
				continue // not a record of Helm
			}
			key := record.Namespace + "/" + record.Labels["name"]
			if found[key] == nil {
				found[key] = &recorded{}
			}
			if number > found[key].last.number {
				found[key].last = revision{number, record.Namespace, record.Name}
			}
			if record.Labels["status"] == "deployed" && number > found[key].deployed.number {
				found[key].deployed = revision{number, record.Namespace, record.Name}
			}
		}
		return &page.ListMeta, nil
	})
	return found, err
}

// record is a release record that names a version which goes.
type record struct {
	resource resource
	named    dependents.Object
	object   *unstructured.Unstructured
	release  *dependents.Release
	found    []dependents.Dependent
}

// readRecord reads one record, and repairs it if the options say so.
func (s *search) readRecord(ctx context.Context, resource resource, of revision) error {
	r := &record{resource: resource, named: dependents.Object{APIVersion: "v1", Kind: resource.kind, Namespace: of.namespace, Name: of.name}}
	for try := 1; ; try++ {
		err := s.get(ctx, r)
		if apierrors.IsNotFound(err) {
			return nil // deleted since it was read
		}
		if err != nil {
			s.notChecked(r.named.String(), err)
			return nil
		}
		if len(r.found) == 0 {
			return nil
		}
		if !s.Repair || !r.found[0].Repairable {
			s.add(r.found)
			return nil
		}
		written, err := s.write(ctx, r)
		if apierrors.IsConflict(err) && try < repairTries {
			continue
		}
		return s.recordRelease(r, written, err)
	}
}

func (s *search) get(ctx context.Context, r *record) (err error) {
	r.object, err = s.dynamic.Resource(r.resource.GroupVersionResource).Namespace(r.named.Namespace).Get(ctx, r.named.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if r.release, err = decode(r.object); err != nil {
		return err
	}
	r.found, err = r.release.In(s.target, r.named)
	return err
}

// recordRelease stores the result of a repair.
func (s *search) recordRelease(r *record, written *metav1.PartialObjectMetadata, err error) error {
	repair := dependents.Repair{
		Object: r.named, UID: string(r.object.GetUID()), Field: fmt.Sprintf("manifest of release %s, %d times", r.release.Name, r.found[0].Count),
		Before: s.target.APIVersion(r.found[0].Version), After: s.target.APIVersion(s.target.To), ResourceVersionBefore: r.object.GetResourceVersion(),
	}
	if err != nil {
		repair.Failure = err.Error()
	} else {
		repair.ResourceVersionAfter = written.ResourceVersion
	}
	if err != nil || s.DryRun {
		s.add(r.found)
	}
	return s.record(repair)
}

// encoded returns the release in the field data: that of a Secret has a second layer of base64.
func encoded(record *unstructured.Unstructured, value string) ([]byte, error) {
	if record.GetKind() == "Secret" {
		return base64.StdEncoding.DecodeString(value)
	}
	return []byte(value), nil
}

func decode(record *unstructured.Unstructured) (*dependents.Release, error) {
	value, found, err := unstructured.NestedString(record.Object, "data", "release")
	if err != nil || !found {
		return nil, errors.Join(errors.New("it has no text in data.release"), err)
	}
	content, err := encoded(record, value)
	if err != nil {
		return nil, fmt.Errorf("decode base64: %w", err)
	}
	return dependents.DecodeRelease(content)
}

// write repairs a record in place: one write, after which Helm can upgrade the release, and also
// return to this revision.
func (s *search) write(ctx context.Context, r *record) (*metav1.PartialObjectMetadata, error) {
	if err := r.release.Repair(s.target); err != nil {
		return nil, err
	}
	content, err := r.release.Encode()
	if err != nil {
		return nil, err
	}
	value := string(content)
	if r.object.GetKind() == "Secret" {
		value = base64.StdEncoding.EncodeToString(content)
	}
	object := &metav1.PartialObjectMetadata{}
	object.Name, object.UID, object.ResourceVersion = r.object.GetName(), r.object.GetUID(), r.object.GetResourceVersion()
	return s.patch(ctx, in(s.metadata, r.resource.GroupVersionResource, r.object.GetNamespace()), object,
		[]map[string]any{{"op": "replace", "path": "/data/release", "value": value}})
}
