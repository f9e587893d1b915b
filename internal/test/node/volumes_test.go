// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestMount follows the ConfigMaps of a projected volume, one of which does not exist at first.
func TestVolumes(t *testing.T) {
	cluster := fake.NewClientBuilder().WithObjects(configMap("a", "one", "1")).Build()
	projected := &corev1.ProjectedVolumeSource{}
	pod := podWith(corev1.VolumeSource{Projected: projected})
	for _, name := range []string{"a", "b"} {
		projected.Sources = append(projected.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: new(true)}})
	}
	dir := t.TempDir()
	volumes := NewVolumes(dir, pod)
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
		expect.NoError(t, step.change())
		expect.NoError(t, volumes.Sync(t.Context(), cluster, pod))
		got, links := read(t, filepath.Join(dir, "files"))
		expect.Equal(t, "files", step.want, got)
		expect.Equal(t, "the rest", step.links, links)
	}

	// Another node takes over, as after a crash, and one of the files is gone.
	expect.NoError(t, cluster.Delete(t.Context(), configMap("b", "three", "3")))
	expect.NoError(t, NewVolumes(dir, pod).Sync(t.Context(), cluster, pod))
	got, links := read(t, filepath.Join(dir, "files"))
	expect.Equal(t, "files", map[string]string{"one": "other"}, got)
	expect.Equal(t, "the rest", []string{"..1", "..data"}, links)
}

func configMap(name, key, value string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, BinaryData: map[string][]byte{key: []byte(value)}}
}

// read returns the files in a folder, and the names that start with dots.
func read(t *testing.T, dir string) (files map[string]string, dotted []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	expect.NoError(t, err)
	files = map[string]string{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			dotted = append(dotted, entry.Name())
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		expect.NoError(t, err)
		files[entry.Name()] = string(text)
	}
	return files, dotted
}

func TestMissingVolume(t *testing.T) {
	pod := podWith(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}})
	if err := NewVolumes(t.TempDir(), pod).Sync(t.Context(), fake.NewClientBuilder().Build(), pod); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("error %v, want that the Secret is not found", err)
	}
}

// podWith has a volume.
func podWith(source corev1.VolumeSource) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "files", VolumeSource: source}}}}
}

// TestArguments: paths of volumes and addresses in arguments are those of the pod, and nothing else changes.
func TestArguments(t *testing.T) {
	spec := corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "files", MountPath: "/etc/tls"}}}
	c := &container{spec: spec, pod: &pod{ip: "127.64.1.2", volumes: NewVolumes("/pod", podWith(corev1.VolumeSource{}))}}
	for arg, want := range map[string]string{
		"--certificates=/etc/tls": "--certificates=/pod/files", "/etc/tls/tls.crt": "/pod/files/tls.crt", "--other=/etc/tlsx": "--other=/etc/tlsx",
		"--bind-address=:9443": "--bind-address=127.64.1.2:9443", "--drain=1s": "--drain=1s", `--spec={"a":":1"}`: `--spec={"a":":1"}`,
		"--metrics-bind-address=0": "--metrics-bind-address=0", "--name=$(POD)": "--name=one",
	} {
		expect.Equal(t, arg, want, c.argument(arg, []string{"POD=one"}))
	}
}

// TestImages: a program that is not there is named.
func TestImages(t *testing.T) {
	for _, path := range []string{"/does/not/exist", "relative", t.TempDir()} {
		want := "image one: " + path + " is no program with an absolute path"
		expect.Equal(t, "error", want, fmt.Sprint(CheckImages(map[string]string{"one": path})))
	}
}
