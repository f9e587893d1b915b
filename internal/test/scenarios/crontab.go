// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CronTab is a CustomResourceDefinition whose schema changes. The manifests are the samples of the
// project.
type CronTab struct {
	// Title of the story.
	Title string
	// Samples is the folder of the manifests. The manifests follow in the order of applying.
	Samples                                         string
	CRDBefore, Policy, CRDBoth, CRDStorage, Objects string
	// Group of the CustomResourceDefinition, and its versions.
	Group, Old, New string
	// Object returns the nth generated object, at the old version.
	Object func(int) *unstructured.Unstructured
	// Name is the object that the story shows.
	Name string
	// OldPath is the field that the new version splits, OldValue its value.
	OldPath  []string
	OldValue string
	// NewFields are the fields that the value is split into.
	NewFields []Field
	// Edit is a merge patch at the old version. It changes the fields to EditedValue and
	// EditedFields.
	Edit         string
	EditedValue  string
	EditedFields []Field
	// OnlyNew is a field that only the new version has. OnlyNewPatch sets it.
	OnlyNew      Field
	OnlyNewPatch string
	// OnlyOld is a field that only the old version has, on the object OnlyOldName.
	OnlyOld     Field
	OnlyOldName string
	// OddName is an object whose value OddValue cannot be split.
	OddName, OddValue string
}

// Field is a path and its value.
type Field struct {
	Path  []string
	Value any
}

// CRD returns the name of the CustomResourceDefinition, which is also the name of its policy.
func (c CronTab) CRD() string { return "crontabs." + c.Group }

// At returns the resource at a version.
func (c CronTab) At(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: c.Group, Version: version, Resource: "crontabs"}
}

// Resource returns the resource at a version in kubectl's notation.
func (c CronTab) Resource(version string) string { return "crontabs." + version + "." + c.Group }

func (c CronTab) object(name string, fields map[string]any) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": c.Group + "/" + c.Old, "kind": "CronTab",
		"metadata": map[string]any{"name": name, "namespace": Namespace},
	}
	maps.Copy(object, fields)
	return &unstructured.Unstructured{Object: object}
}

// HostPort is the CronTab of the Kubernetes documentation on versions in
// CustomResourceDefinitions: hostPort becomes host and port.
func HostPort() CronTab {
	c := CronTab{
		Title:   "hostPort becomes host and port",
		Samples: "config/samples/crontab-hostport", CRDBefore: "1-crd-v1beta1.yaml", Policy: "2-policy.yaml",
		CRDBoth: "3-crd-both.yaml", CRDStorage: "4-crd-storage-v1.yaml", Objects: "objects.yaml",
		Group: "example.com", Old: "v1beta1", New: "v1",
		Name: "local", OldPath: []string{"hostPort"}, OldValue: "localhost:1234",
		NewFields:    []Field{{[]string{"host"}, "localhost"}, {[]string{"port"}, "1234"}},
		Edit:         `{"hostPort":"localhost:9999"}`,
		EditedValue:  "localhost:9999",
		EditedFields: []Field{{[]string{"host"}, "localhost"}, {[]string{"port"}, "9999"}},
		OnlyNew:      Field{[]string{"timeoutSeconds"}, int64(30)}, OnlyNewPatch: `{"timeoutSeconds":30}`,
		OnlyOld: Field{[]string{"note"}, "ask the data team before moving this"}, OnlyOldName: "with-note",
		OddName: "without-port", OddValue: "batch.example.com",
	}
	c.Object = func(i int) *unstructured.Unstructured {
		return c.object(fmt.Sprintf("job-%04d", i), map[string]any{
			"hostPort": fmt.Sprintf("worker-%d.example.com:%d", i%16, 1024+i), "replicas": int64(i % 5)})
	}
	return c
}

// CronSpec is the CronTab of the proposal for conversion webhooks: cronSpec
// becomes five fields.
func CronSpec() CronTab {
	c := CronTab{
		Title:   "cronSpec becomes five fields",
		Samples: "config/samples/crontab-cronspec", CRDBefore: "1-crd-v1.yaml", Policy: "2-policy.yaml",
		CRDBoth: "3-crd-both.yaml", CRDStorage: "4-crd-storage-v2.yaml", Objects: "objects.yaml",
		Group: "stable.example.com", Old: "v1", New: "v2",
		Name: "every-five-days", OldPath: []string{"spec", "cronSpec"}, OldValue: "* * * * */5",
		NewFields:    schedule("*", "*", "*", "*", "*/5"),
		Edit:         `{"spec":{"cronSpec":"30 6 * * 1"}}`,
		EditedValue:  "30 6 * * 1",
		EditedFields: schedule("30", "6", "*", "*", "1"),
		OnlyNew:      Field{[]string{"spec", "timeZone"}, "Europe/Berlin"}, OnlyNewPatch: `{"spec":{"timeZone":"Europe/Berlin"}}`,
		OnlyOld: Field{[]string{"spec", "owner"}, "data team"}, OnlyOldName: "with-owner",
		OddName: "by-name", OddValue: "@hourly",
	}
	c.Object = func(i int) *unstructured.Unstructured {
		return c.object(fmt.Sprintf("job-%04d", i), map[string]any{"spec": map[string]any{
			"cronSpec": fmt.Sprintf("%d %d * * %d", i%60, i%24, i%7), "image": "my-awesome-cron-image", "replicas": int64(i % 5)}})
	}
	return c
}

func schedule(values ...string) []Field {
	var fields []Field
	for i, name := range []string{"min", "hour", "dayOfMonth", "month", "dayOfWeek"} {
		fields = append(fields, Field{[]string{"spec", name}, values[i]})
	}
	return fields
}
