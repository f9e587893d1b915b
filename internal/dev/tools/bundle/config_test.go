// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// installed returns the objects of config/default.
func installed(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	objects, err := renderObjects(filepath.Join(root, "config", "default"), defaultImage)
	noError(t, err)
	return objects
}

// TestBesidesOLM: config/overlays/olm has exactly the objects that a bundle cannot have.
func TestBesidesOLM(t *testing.T) {
	var want, got []string
	for _, object := range installed(t) {
		if notCarried[object.GetKind()] != "" && object.GetKind() != "Namespace" {
			want = append(want, object.GetKind()+"/"+object.GetName())
		}
	}
	beside, err := renderObjects(filepath.Join(root, "config", "overlays", "olm"), defaultImage)
	noError(t, err)
	for _, object := range beside {
		got = append(got, object.GetKind()+"/"+object.GetName())
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-config/default +config/overlays/olm:\n%s", diff)
	}
}

// TestRelatedImages: relatedImages has every image that runs, so that mirroring the bundle mirrors
// them all.
func TestRelatedImages(t *testing.T) {
	csv := load(t).CSV
	related := map[string]bool{}
	for _, each := range csv.Spec.RelatedImages {
		related[each.Image] = true
	}
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			images := []string{container.Image}
			for _, variable := range container.Env {
				if strings.HasSuffix(variable.Name, "_IMAGE") {
					images = append(images, variable.Value)
				}
			}
			for _, image := range images {
				if !related[image] {
					t.Errorf("%s runs %s, which is not among relatedImages", deployment.Name, image)
				}
			}
		}
	}
}

// TestRelease: the version and image digest of a release replace the defaults everywhere.
func TestRelease(t *testing.T) {
	const image = "registry.example.com/conversion-operator@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	rendered, err := options{root: root, image: image, version: "1.2.3", replaces: "1.2.2"}.render()
	noError(t, err)
	text := string(rendered["manifests/conversion-operator.clusterserviceversion.yaml"])
	for _, want := range []string{"containerImage: " + image, "- image: " + image, "value: " + image, "        image: " + image,
		"name: conversion-operator.v1.2.3\n", "replaces: conversion-operator.v1.2.2\n", "version: 1.2.3\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the ClusterServiceVersion does not say %q", want)
		}
	}
	if strings.Contains(text, defaultImage) {
		t.Errorf("the ClusterServiceVersion still names %s", defaultImage)
	}
	if _, err := (options{root: root, version: "v1"}).render(); err == nil || !strings.Contains(err.Error(), "--version") {
		t.Errorf("version v1: error %v", err)
	}
}

// TestProject: PROJECT, which command-line tools read, names the kinds of the bundle, except the
// operator's internal ones.
func TestProject(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "PROJECT"))
	noError(t, err)
	project := struct {
		ProjectName, Domain, Repo string
		Layout                    []string
		Resources                 []struct{ Group, Kind, Version, Domain string }
	}{}
	noError(t, yaml.Unmarshal(text, &project))
	csv := load(t).CSV
	var want, got []string
	for _, each := range csv.Spec.CustomResourceDefinitions.Owned {
		if !strings.Contains(csv.Annotations["operators.operatorframework.io/internal-objects"], each.Name) {
			want = append(want, each.Kind+" "+each.Version)
		}
	}
	for _, each := range project.Resources {
		got = append(got, each.Kind+" "+each.Version)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-bundle +PROJECT):\n%s", diff)
	}
	if project.ProjectName != packageName || project.Layout[0] != csv.Annotations["operators.operatorframework.io/project_layout"] {
		t.Errorf("PROJECT is of %s, %v", project.ProjectName, project.Layout)
	}
}
