// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	goruntime "runtime"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const preservedName = "conversion-operator.io/v1beta1.crontabs.example.com"

// ruling has v1beta1 hold values of two fields that v1 lacks.
func ruling() (*apiextensionsv1.CustomResourceDefinition, *conversion.Ruleset) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name, crd.UID = "crontabs.example.com", "crd-1"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true}, {Name: "v1", Served: true, Storage: true}}
	return crd, &conversion.Ruleset{
		Format: 3, CRD: crd.Name, Group: "example.com", Kind: "CronTab", Hub: "v1", Versions: []string{"v1", "v1beta1"},
		Spokes: []conversion.Spoke{{Version: "v1beta1"}},
	}
}

// TestCountKeepsNoConverter: what stays of a count in memory is small.
func TestCountKeepsNoConverter(t *testing.T) {
	crd, rules := ruling()
	c := newHeadCount(crd, rules)
	c.begin("v1")
	counted, converter := c.counted(), weak.Make(c.converter)
	expect.Eventually(t, "the converter is freed", func() (bool, string) {
		goruntime.GC()
		return converter.Value() == nil, "it is still there"
	})
	expect.Equal(t, "counted of", crd.UID, counted.CRD)
}

func TestHeadCount(t *testing.T) {
	crd, rules := ruling()
	c := newHeadCount(crd, rules)
	c.begin("v1")
	c.add(live.Head{Name: "from a list that is read again", Annotations: map[string]string{preservedName: "x"}})
	c.begin("v1")
	kept := c.add(live.Head{Namespace: "ns", Name: "a", Annotations: map[string]string{preservedName: `{"format":3,"rules":"","hidden":{"/note":1}}`, "other": "text"}})
	c.add(live.Head{Namespace: "ns", Name: "b"})
	c.end(true)
	if kept.Annotations != nil || kept.Name != "a" {
		t.Errorf("in memory stays %+v", kept)
	}
	size := int64(len(`{"format":3,"rules":"","hidden":{"/note":1}}`))
	want := &observed.Held{CRD: "crd-1", Ruleset: rules.Hash(), All: true, Holdings: conversion.Holdings{
		Seen: 2, Objects: 1, Bytes: size, Largest: "ns/a", LargestBytes: size, Versions: []conversion.VersionHoldings{
			{Version: "v1beta1", Objects: 1, Bytes: size, Fields: []conversion.FieldHoldings{{Path: ".note", Objects: 1}}},
		},
	}}
	if since := time.Since(c.counted().Since); since < 0 || since > time.Hour {
		t.Errorf("the count began %v ago", since)
	}
	expect.Equal(t, "counted", want, c.counted(), cmpopts.IgnoreFields(observed.Held{}, "Since"))
	c.begin("v1beta1")
	expect.Equal(t, "counted of what converters have restored", nil, c.counted())
	none := newHeadCount(crd, nil)
	none.begin("v1")
	none.add(live.Head{Name: "a"})
	none.end(true)
	expect.Equal(t, "counted without rules", nil, none.counted())
}

// TestDiscarding removes the discarded values from annotations, and counts the rest.
func TestDiscarding(t *testing.T) {
	annotations := map[string]map[string]string{
		"all":     {preservedName: `{"format":3,"rules":"","hidden":{"/note":1}}`, "other": "text"},
		"some":    {preservedName: `{"format":3,"rules":"","hidden":{"/mode":"x","/note":1}}`},
		"nothing": nil,
	}
	client := fake.NewSimpleMetadataClient(runtime.NewScheme())
	object := func(name string) *metav1.PartialObjectMetadata {
		one := head(name, []string{"v1"})
		one.Annotations = annotations[name]
		return one
	}
	client.PrependReactor("list", "crontabs", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &metav1.List{}
		for name := range annotations {
			list.Items = append(list.Items, runtime.RawExtension{Object: object(name)})
		}
		return true, list, nil
	})
	var patches []string
	client.PrependReactor("patch", "crontabs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction) //nolint:forcetypeassert // it reacts to patches
		patches = append(patches, string(patch.GetPatch()))
		var operations []operation
		if err := json.Unmarshal(patch.GetPatch(), &operations); err != nil {
			return true, nil, err
		}
		last := operations[len(operations)-1]
		delete(annotations[patch.GetName()], preservedName)
		if last.Value != nil {
			var text string
			if err := json.Unmarshal(last.Value, &text); err != nil {
				return true, nil, err
			}
			annotations[patch.GetName()][preservedName] = text
		}
		return true, object(patch.GetName()), nil
	})
	crd, rules := ruling()
	c := &managedFieldsCleaner{
		definition: steady{}, objects: client.Resource(cronTabs), storage: "example.com/v1", others: []string{"example.com/v1"},
		objectsIn: func(namespace string) metadata.ResourceInterface {
			return client.Resource(cronTabs).Namespace(namespace)
		},
		version: "v1beta1", discard: []string{".note"}, count: newHeadCount(crd, rules),
	}
	expect.NoError(t, c.run(t.Context()))
	want := map[string]map[string]string{"all": {"other": "text"}, "some": {preservedName: `{"format":3,"rules":"","hidden":{"/mode":"x"}}`}, "nothing": nil}
	expect.Equal(t, "annotations", want, annotations)
	held := c.count.counted()
	if c.discarded != 2 || !held.All || held.Seen != 3 || held.Objects != 1 || held.Versions[0].Fields[0].Path != ".mode" {
		t.Errorf("discarded from %d objects, left is %+v", c.discarded, held)
	}
	const first = `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"replace","path":"/metadata/resourceVersion","value":"1"},`
	for _, patch := range patches {
		if len(patches) != 2 || patch[:len(first)] != first {
			t.Errorf("patches are %v", patches)
		}
	}
}
