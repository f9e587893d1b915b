// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestMount follows the ConfigMaps of a projected volume, one of which does not exist at first.
func TestMount(t *testing.T) {
	cluster := fake.NewClientBuilder().WithObjects(configMap("a", "one", "1")).Build()
	m := &mount{dir: t.TempDir(), volume: corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}}
	for _, name := range []string{"a", "b"} {
		m.volume.Projected.Sources = append(m.volume.Projected.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: new(true)}})
	}
	for _, step := range []struct {
		change func() error
		want   map[string]string
		// links is what the folder of the volume has besides.
		links []string
	}{
		{func() error { return nil }, map[string]string{"one": "1"}, []string{"..1", "..data"}},
		{func() error { return nil }, map[string]string{"one": "1"}, []string{"..1", "..data"}},
		{func() error { return cluster.Create(t.Context(), configMap("b", "two", "2")) }, map[string]string{"one": "1", "two": "2"}, []string{"..2", "..data"}},
		{func() error { return cluster.Update(t.Context(), configMap("b", "three", "3")) }, map[string]string{"one": "1", "three": "3"}, []string{"..3", "..data"}},
		{func() error { return cluster.Update(t.Context(), configMap("a", "one", "other")) }, map[string]string{"one": "other", "three": "3"}, []string{"..4", "..data"}},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if err := m.sync(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		got, links := read(t, m.dir)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(step.links, links); diff != "" {
			t.Errorf("the rest (-want +got):\n%s", diff)
		}
	}
}

func configMap(name, key, value string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}, BinaryData: map[string][]byte{key: []byte(value)}}
}

// read returns the files in a folder, and the names that start with dots.
func read(t *testing.T, dir string) (files map[string]string, dotted []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			dotted = append(dotted, entry.Name())
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return files, dotted
}

func TestMissingVolume(t *testing.T) {
	m := &mount{dir: t.TempDir(), volume: corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}}}
	if err := m.sync(t.Context(), fake.NewClientBuilder().Build()); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("error %v, want that the Secret is not found", err)
	}
}

func TestArgs(t *testing.T) {
	spec := &corev1.PodSpec{
		Volumes:    []corev1.Volume{{Name: "tls"}, {Name: "rulesets"}},
		Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "tls", MountPath: "/etc/tls"}, {Name: "rulesets", MountPath: "/etc/rulesets"}}}},
	}
	got := newMounts("/pod", spec).args([]string{"serve", "--rulesets=/etc/rulesets", "--certificates=/etc/tls", "--drain=1s"})
	want := []string{"serve", "--rulesets=/pod/rulesets", "--certificates=/pod/tls", "--drain=1s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		options Options
		valid   bool
	}{
		{Options{Definitions: 10, Policies: 5, Singles: 5}, true},
		{Options{Definitions: 10, Policies: 6, Singles: 5}, false},
		{Options{Definitions: 10, Policies: 5, Singles: 2, Most: 11}, false},
		{Options{Definitions: 10, Policies: 0, Singles: 2}, false},
		{Options{Definitions: 10, Policies: 1, Singles: 0}, false},
	} {
		if err := test.options.validate(); (err == nil) != test.valid {
			t.Errorf("%+v: error %v, valid %t", test.options, err, test.valid)
		}
	}
}
