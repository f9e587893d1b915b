// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"maps"
	"strings"

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
	// OldField is the field that the new version splits into NewFields.
	OldField  Field
	NewFields []Field
	// EditedValue is another value of OldField, and EditedFields what it is split into.
	EditedValue  string
	EditedFields []Field
	// OnlyNew is a field that only the new version has.
	OnlyNew Field
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

// String returns the path.
func (f Field) String() string { return "." + strings.Join(f.Path, ".") }

// CRD returns the name of the CustomResourceDefinition, which is also the name of its policy.
func (c CronTab) CRD() string { return "crontabs." + c.Group }

// At returns the resource at a version.
func (c CronTab) At(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: c.Group, Version: version, Resource: "crontabs"}
}

// Resource returns the resource at a version in kubectl's notation.
func (c CronTab) Resource(version string) string { return "crontabs." + version + "." + c.Group }

func (c CronTab) object(i int, fields map[string]any) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": c.Group + "/" + c.Old, "kind": "CronTab",
		"metadata": map[string]any{"name": fmt.Sprintf("job-%04d", i), "namespace": Namespace},
	}
	maps.Copy(object, fields)
	return &unstructured.Unstructured{Object: object}
}

// HostPort is the CronTab of the Kubernetes documentation on versions in
// CustomResourceDefinitions: hostPort becomes host and port.
func HostPort() CronTab {
	hostAndPort := func(host, port string) []Field {
		return []Field{{[]string{"host"}, host}, {[]string{"port"}, port}}
	}
	c := CronTab{
		Title:   "hostPort becomes host and port",
		Samples: "config/samples/crontab-hostport", CRDBefore: "1-crd-v1beta1.yaml", Policy: "2-policy.yaml",
		CRDBoth: "3-crd-both.yaml", CRDStorage: "4-crd-storage-v1.yaml", Objects: "objects.yaml",
		Group: "example.com", Old: "v1beta1", New: "v1",
		Name: "local", OldField: Field{[]string{"hostPort"}, "localhost:1234"}, NewFields: hostAndPort("localhost", "1234"),
		EditedValue: "localhost:9999", EditedFields: hostAndPort("localhost", "9999"),
		OnlyNew: Field{[]string{"timeoutSeconds"}, int64(30)},
		OnlyOld: Field{[]string{"note"}, "ask the data team before moving this"}, OnlyOldName: "with-note",
		OddName: "without-port", OddValue: "batch.example.com",
	}
	c.Object = func(i int) *unstructured.Unstructured {
		return c.object(i, map[string]any{"hostPort": fmt.Sprintf("worker-%d.example.com:%d", i%16, 1024+i), "replicas": int64(i % 5)})
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
		Name: "every-five-days", OldField: Field{[]string{"spec", "cronSpec"}, "* * * * */5"}, NewFields: schedule("*", "*", "*", "*", "*/5"),
		EditedValue: "30 6 * * 1", EditedFields: schedule("30", "6", "*", "*", "1"),
		OnlyNew: Field{[]string{"spec", "timeZone"}, "Europe/Berlin"},
		OnlyOld: Field{[]string{"spec", "owner"}, "data team"}, OnlyOldName: "with-owner",
		OddName: "by-name", OddValue: "@hourly",
	}
	c.Object = func(i int) *unstructured.Unstructured {
		return c.object(i, map[string]any{"spec": map[string]any{
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
