// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var (
	secrets = resource{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "Secret", true}
	named   = dependents.Object{APIVersion: "v1", Kind: "Secret", Namespace: "n", Name: "owned"}
)

// owner returns an object with a uid.
func owner(uid string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "CronTab"}}
	object.Namespace, object.Name = "n", "owner"
	object.UID = types.UID(uid)
	return object
}

// owned returns an object whose owner is named at a version.
func owned(version string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	object.Namespace, object.Name, object.UID, object.ResourceVersion = "n", "owned", "uid-of-owned", "1"
	object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/" + version, Kind: "CronTab", Name: "owner", UID: "uid-of-owner"}}
	return object
}

// TestRepairOwners: a write that fails is recorded, and one that meets another writer is repeated
// with the state of the object that it left.
func TestRepairOwners(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "owned", errors.New("changed"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "owned", errors.New("not you"))
	absent := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "owned")
	for name, test := range map[string]struct {
		owner *metav1.PartialObjectMetadata
		// current is the object after a conflict.
		current  *metav1.PartialObjectMetadata
		errs     []error
		repaired bool
		want     string
	}{
		"it succeeds":            {owner("uid-of-owner"), owned("v1beta1"), []error{nil}, true, "1 patch: done"},
		"another writer":         {owner("uid-of-owner"), owned("v1beta1"), []error{conflict, nil}, true, "2 patches: done"},
		"its controller":         {owner("uid-of-owner"), owned("v1"), []error{conflict}, true, "1 patch:"},
		"other writers forever":  {owner("uid-of-owner"), owned("v1beta1"), []error{conflict, conflict, conflict, conflict, conflict}, false, "5 patches: Operation cannot be fulfilled"},
		"it may not":             {owner("uid-of-owner"), owned("v1beta1"), []error{forbidden}, false, "1 patch: secrets \"owned\" is forbidden"},
		"deleted":                {owner("uid-of-owner"), owned("v1beta1"), []error{absent}, true, "1 patch:"},
		"deleted after conflict": {owner("uid-of-owner"), nil, []error{conflict}, true, "1 patch:"},
		"the owner is gone":      {nil, owned("v1beta1"), nil, false, "0 patches: its owner CronTab owner with the uid uid-of-owner does not exist"},
		"the owner is another":   {owner("other"), owned("v1beta1"), nil, false, "0 patches: its owner CronTab owner with the uid uid-of-owner does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			for _, object := range []*metav1.PartialObjectMetadata{test.owner, test.current} {
				if object != nil {
					objects = append(objects, object)
				}
			}
			s, client := newSearch(t, objects...)
			patches := 0
			client.PrependReactor("patch", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				patches++
				written := owned("v1")
				written.ResourceVersion = "2"
				return true, written, test.errs[patches-1]
			})
			repaired, err := s.repairOwners(t.Context(), secrets, named, owned("v1beta1"))
			expect.NoError(t, err)
			outcome := ""
			for _, repair := range s.report.Repairs {
				outcome = " " + repair.Failure
				if repair.Failure == "" {
					outcome = " done"
				}
			}
			got := fmt.Sprintf("%d patches:%s", patches, outcome)
			if patches == 1 {
				got = fmt.Sprintf("1 patch:%s", outcome)
			}
			if repaired != test.repaired || !strings.HasPrefix(got, test.want) {
				t.Errorf("repaired: %t, %s; want %s", repaired, got, test.want)
			}
		})
	}
}

// TestPatch: a write has preconditions.
func TestPatch(t *testing.T) {
	s, client := newSearch(t, owner("uid-of-owner"))
	s.DryRun = true
	var sent string
	client.PrependReactor("patch", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		sent = string(action.(clienttesting.PatchAction).GetPatch())
		return true, owned("v1"), nil
	})
	if repaired, err := s.repairOwners(t.Context(), secrets, named, owned("v1beta1")); err != nil || repaired {
		t.Errorf("repaired: %t, %v", repaired, err)
	}
	want := `[{"op":"test","path":"/metadata/uid","value":"uid-of-owned"},{"op":"replace","path":"/metadata/resourceVersion","value":"1"},` +
		`{"op":"test","path":"/metadata/ownerReferences/0/uid","value":"uid-of-owner"},{"op":"replace","path":"/metadata/ownerReferences/0/apiVersion","value":"example.com/v1"}]`
	expect.Equal(t, "patch", want, sent)
}

// TestRecordFails: without a record there are no more repairs.
func TestRecordFails(t *testing.T) {
	s, client := newSearch(t, owner("uid-of-owner"), owned("v1beta1"))
	s.Record, s.Repair, s.PageSize = failing{}, true, 10
	client.PrependReactor("patch", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, owned("v1"), nil })
	err := s.scan(t.Context(), []resource{secrets, secrets})
	if err == nil || err.Error() != "write the record of repairs, which stop: full" || len(s.report.Repairs) != 1 {
		t.Errorf("error is %v, %d repairs", err, len(s.report.Repairs))
	}
}

// TestExpiredToken: a list continues with the token that the API server offers.
func TestExpiredToken(t *testing.T) {
	expired := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired, ListMeta: metav1.ListMeta{Continue: "b"}}}
	last := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired}}
	for name, test := range map[string]struct {
		answers map[string]error
		want    string
		err     error
	}{
		"renewed":     {map[string]error{"a": expired}, " a b", nil},
		"not renewed": {map[string]error{"a": last}, " a", last},
		"forever":     {map[string]error{"a": expired, "b": expired}, " a b", expired},
	} {
		t.Run(name, func(t *testing.T) {
			var tokens []string
			err := eachPage(t.Context(), 7, func(_ context.Context, options metav1.ListOptions) (*metav1.ListMeta, error) {
				tokens = append(tokens, options.Continue)
				next := map[string]string{"": "a"}[options.Continue]
				return &metav1.ListMeta{Continue: next}, test.answers[options.Continue]
			})
			if got := strings.Join(tokens, " "); got != test.want || test.err != nil && !errors.Is(err, test.err) || test.err == nil && err != nil {
				t.Errorf("tokens %q, want %q; error is %v", got, test.want, err)
			}
		})
	}
}

// TestNotChecked: a resource that cannot be read is reported, and the others are read.
func TestNotChecked(t *testing.T) {
	s, client := newSearch(t, owned("v1beta1"))
	s.PageSize = 10
	client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("not you"))
	})
	configMaps := resource{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", true}
	expect.NoError(t, s.scan(t.Context(), []resource{configMaps, secrets}))
	want := []dependents.NotChecked{{What: "configmaps", Why: "configmaps is forbidden: not you"}}
	expect.Equal(t, "not checked", want, s.report.NotChecked)
	expect.Equal(t, "dependents", 1, len(s.report.Dependents))
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com"}}
	crd.Spec.Group, crd.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs", Kind: "CronTab"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true}, {Name: "v1", Served: true, Storage: true}}
	return crd
}

func newSearch(t *testing.T, objects ...runtime.Object) (*search, *metadatafake.FakeMetadataClient) {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	expect.NoError(t, metav1.AddMetaToScheme(scheme))
	client := metadatafake.NewSimpleMetadataClient(scheme, objects...)
	target, err := dependents.NewTarget(definition(), []string{"v1beta1"})
	expect.NoError(t, err)
	return &search{
		Options: Options{Most: 10, Progress: func(string, int64) {}}, target: target, report: &dependents.Report{}, metadata: client, managers: target.Managers(),
	}, client
}

// failing is a full disk.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }
