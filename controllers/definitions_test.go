// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/published"
)

// reads answers reads of CustomResourceDefinitions, and records their resourceVersions.
type reads struct {
	client.Client
	// version is that of the answers; late makes reads with a resourceVersion fail.
	version string
	late    bool
	asked   []string
}

func (r *reads) Get(_ context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	asked := "latest"
	var of client.GetOptions
	of.ApplyOptions(options)
	if of.Raw != nil {
		asked = of.Raw.ResourceVersion
	}
	r.asked = append(r.asked, asked)
	if r.late && of.Raw != nil {
		return errors.New("Too large resource version")
	}
	object.SetName(key.Name)
	object.SetResourceVersion(r.version)
	return nil
}

// TestDefinition: no read of a CustomResourceDefinition is older than a previous one, or than the watch.
func TestDefinition(t *testing.T) {
	live, watched := &reads{version: "20"}, &reads{version: "9"}
	r := &ConversionPolicyReconciler{Client: watched, Live: live}
	read := func(want ...string) {
		t.Helper()
		live.asked = nil
		crd, err := r.definition(t.Context(), "crontabs.example.com")
		expect.NoError(t, err)
		r.definitions.put(crd.Name, crd.ResourceVersion)
		expect.Equal(t, "reads", want, live.asked)
	}
	read("9")
	read("20")
	watched.version = "100"
	read("100")
	live.late = true
	read("100", "latest")
	watched.version = "not of Kubernetes"
	read("latest")
	watched.version = ""
	read("20", "latest")
	r.definitions.forget("crontabs.example.com")
	read("latest")
}

// TestProtobuf: CustomResourceDefinitions are the same after a round trip through protobuf, in which the
// manager reads them.
func TestProtobuf(t *testing.T) {
	all, err := published.Read(t.Context(), published.ClusterAPI, published.Karpenter, published.Kueue, published.Tekton)
	expect.NoError(t, err)
	for _, crd := range all {
		text, err := crd.Marshal()
		expect.NoError(t, err)
		read := &apiextensionsv1.CustomResourceDefinition{TypeMeta: metav1.TypeMeta{}}
		expect.NoError(t, read.Unmarshal(text))
		read.TypeMeta = crd.TypeMeta
		if !equality.Semantic.DeepEqual(crd, read) {
			t.Errorf("%s: (-want +got):\n%s", crd.Name, cmp.Diff(crd, read))
		}
	}
}
