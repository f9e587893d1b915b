// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/test/docs"
)

// patience is the timeout of kubectl wait.
const patience = "--timeout=120s"

// Play is the story of one CustomResourceDefinition: first the policy, then the new version, then
// the new storage version.
type Play struct {
	*Teller
	*Fleet
	CronTab
	// Count is the number of objects, besides those of the samples.
	Count int
}

// Tell plays all chapters. Meanwhile, a client reads an object at the old version, and must never
// see an error or a wrong value.
func (p *Play) Tell(ctx context.Context) error {
	p.Teller.Title(p.CronTab.Title)
	p.before(ctx)
	client := p.Read(ctx, p.At(p.Old), p.OnlyOldName, func(object *unstructured.Unstructured) error {
		return expect(object, p.OnlyOld)
	})
	p.policyFirst(ctx)
	p.newVersion(ctx)
	p.bothVersions(ctx)
	p.oneSidedFields(ctx)
	p.oddValue(ctx)
	p.storageMoves(ctx)
	reads, err := client.Stop()
	if err != nil {
		p.Fail(fmt.Errorf("a client that read at %s all the while was interrupted: %w", p.Old, err))
	}
	p.Claim("a client read an object at %s all the while: %d reads, none failed or differed", p.Old, reads)
	return p.Failure()
}

func (p *Play) file(name string) string { return filepath.Join(p.Samples, name) }

func (p *Play) policy() string { return "conversionpolicy/" + p.CRD() }

func (p *Play) before(ctx context.Context) {
	p.Chapter("One version, and " + fmt.Sprint(p.Count) + " objects more than the samples")
	p.Show(ctx, "kubectl", "apply", "-f", p.file(p.CRDBefore))
	p.Must(ctx, "sh", "-c", docs.Established("crd/"+p.CRD()))
	p.Show(ctx, "kubectl", "apply", "-f", p.file(p.Objects))
	p.Fail(p.Create(ctx, p.At(p.Old), p.Count, p.Object))
	p.Say("%d more objects were created.", p.Count)
	p.showStored(ctx, p.Old)
}

func (p *Play) policyFirst(ctx context.Context) {
	p.Chapter("The policy first: the converter is there before anyone can ask for a conversion")
	p.Show(ctx, "cat", p.file(p.Policy))
	p.Show(ctx, "kubectl", "apply", "-f", p.file(p.Policy))
	p.waitFor(ctx, "Ready")
	p.Show(ctx, "kubectl", "get", "conversionpolicies", p.CRD())
	p.showConditions(ctx)
}

func (p *Play) newVersion(ctx context.Context) {
	p.Chapter("Then the CustomResourceDefinition gets its new version " + p.New + ", served, not stored")
	p.Show(ctx, "kubectl", "apply", "-f", p.file(p.CRDBoth))
	p.waitFor(ctx, "RulesValid")
	p.waitFor(ctx, "Ready")
	p.showConditions(ctx)
}

func (p *Play) bothVersions(ctx context.Context) {
	p.Chapter("The same object at both versions")
	p.showObject(ctx, p.Old, p.Name, p.OldField)
	p.showObject(ctx, p.New, p.Name, p.NewFields...)
	p.Claim("%s at %s is the same object at %s", p.Name, p.Old, p.New)

	p.Chapter("An edit through the old version")
	p.patch(ctx, p.Old, p.Name, Field{p.OldField.Path, p.EditedValue})
	p.showObject(ctx, p.New, p.Name, p.EditedFields...)
	p.Claim("the edit through %s arrived at %s", p.Old, p.New)
}

// oneSidedFields sets a field that only the new version has, edits the object through the old
// version, and verifies that the field is still set.
func (p *Play) oneSidedFields(ctx context.Context) {
	p.Chapter("Fields that only one version has")
	edited := func(through string) Field { return Field{[]string{"metadata", "labels", "edited-through"}, through} }
	p.patch(ctx, p.New, p.Name, p.OnlyNew)
	p.patch(ctx, p.Old, p.Name, edited(p.Old))
	p.showObject(ctx, p.New, p.Name, append(p.EditedFields, p.OnlyNew)...)
	p.Claim("%s exists in %s only, and survived an edit through %s", p.OnlyNew, p.New, p.Old)
	p.patch(ctx, p.New, p.OnlyOldName, edited(p.New))
	p.showObject(ctx, p.Old, p.OnlyOldName, p.OnlyOld)
	p.Claim("%s exists in %s only, and survived an edit through %s", p.OnlyOld, p.Old, p.New)
}

func (p *Play) oddValue(ctx context.Context) {
	p.Chapter("A value that the rule cannot split")
	object, err := p.Get(ctx, p.At(p.New), p.OddName)
	if err != nil {
		p.Fail(err)
		return
	}
	for _, field := range p.NewFields {
		if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, field.Path...); found {
			p.Fail(fmt.Errorf("%s at %s has %s, which cannot be known", p.OddName, p.New, field))
		}
	}
	p.showObject(ctx, p.Old, p.OddName, Field{p.OldField.Path, p.OddValue})
	p.Claim("%s is readable at both versions, and its %q is kept", p.OddName, p.OddValue)
}

func (p *Play) storageMoves(ctx context.Context) {
	p.Chapter("Then the storage version moves, and stored objects are migrated")
	storedVersions := []string{"kubectl", "get", "crd", p.CRD(), "-o", `jsonpath={.status.storedVersions}{"\n"}`}
	p.Say("status.storedVersions before:")
	p.Show(ctx, storedVersions...)
	p.Show(ctx, "kubectl", "apply", "-f", p.file(p.CRDStorage))
	p.followMigration(ctx)
	p.waitFor(ctx, "Ready")
	p.Show(ctx, "kubectl", "get", "conversionpolicies", p.CRD())
	p.Say("status.storedVersions after:")
	if got := strings.TrimSpace(p.Show(ctx, storedVersions...)); got != `["`+p.New+`"]` {
		p.Fail(fmt.Errorf("status.storedVersions is %s, want %s", got, p.New))
	}
	p.Claim("status.storedVersions lists %s only", p.New)
	p.showStored(ctx, p.New)
	p.nothingLost(ctx)
}

// pollPause is the time between two reads of a migration's progress.
const pollPause = 200 * time.Millisecond

// followMigration prints the progress until the migration succeeds.
func (p *Play) followMigration(ctx context.Context) {
	const columns = "custom-columns=NAME:.metadata.name,STATE:.status.migration.state,VERSION:.status.migration.storageVersion," +
		"MIGRATED:.status.migration.progress,STORED:.status.crd.storedVersions"
	words := []string{"kubectl", "get", p.policy(), "-o", columns}
	p.print("$ %s --watch", quote(words))
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("the migration did not succeed in time"))
	defer cancel()
	var told []string
	for p.failed == nil {
		line := strings.Join(strings.Fields(p.Must(ctx, append(words, "--no-headers")...)), "  ")
		if !slices.Contains(told, line) {
			told = append(told, line)
			p.print("  %s", line)
		}
		if strings.Contains(line, "Succeeded  "+p.New) {
			return
		}
		select {
		case <-ctx.Done():
			p.Fail(fmt.Errorf("%w; last seen: %v", context.Cause(ctx), told))
		case <-time.After(pollPause):
		}
	}
}

// nothingLost reads every object at the old version, at which it was created.
func (p *Play) nothingLost(ctx context.Context) {
	items, err := p.List(ctx, p.At(p.Old))
	p.Fail(err)
	values := map[string]any{}
	for _, item := range items {
		values[item.GetName()], _, _ = unstructured.NestedFieldNoCopy(item.Object, p.OldField.Path...)
	}
	for i := range p.Count {
		want := p.Object(i)
		value, _, _ := unstructured.NestedFieldNoCopy(want.Object, p.OldField.Path...)
		if values[want.GetName()] != value {
			p.Fail(fmt.Errorf("%s at %s has %v, and was created with %v", want.GetName(), p.Old, values[want.GetName()], value))
		}
	}
	p.Claim("all %d created objects read at %s as they were created there, now from bytes at %s", p.Count, p.Old, p.New)
}

func (p *Play) waitFor(ctx context.Context, condition string) {
	p.Show(ctx, "kubectl", "wait", "--for=condition="+condition, p.policy(), patience)
}

func (p *Play) showConditions(ctx context.Context) {
	p.Show(ctx, "kubectl", "get", p.policy(), "-o",
		`jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}`)
}

// patch sets a field of an object at a version.
func (p *Play) patch(ctx context.Context, version, name string, field Field) {
	value := map[string]any{}
	p.Fail(unstructured.SetNestedField(value, field.Value, field.Path...))
	text, err := json.Marshal(value)
	p.Fail(err)
	p.Show(ctx, "kubectl", "patch", p.Resource(version), name, "--type=merge", "-p", string(text))
}

// showObject prints an object, and checks some of its fields.
func (p *Play) showObject(ctx context.Context, version, name string, fields ...Field) {
	p.Show(ctx, "kubectl", "get", p.Resource(version), name)
	object, err := p.Get(ctx, p.At(version), name)
	if err == nil {
		err = expect(object, fields...)
	}
	p.Fail(err)
}

func expect(object *unstructured.Unstructured, fields ...Field) error {
	for _, field := range fields {
		value, _, err := unstructured.NestedFieldNoCopy(object.Object, field.Path...)
		if err != nil || !reflect.DeepEqual(value, field.Value) {
			return fmt.Errorf("%s at %s: %s is %#v, want %#v", object.GetName(), object.GetAPIVersion(), field, value, field.Value)
		}
	}
	return nil
}

// showStored prints the content of etcd, and checks that all objects are stored at one version.
func (p *Play) showStored(ctx context.Context, version string) {
	stored, err := ReadStored(ctx, p.Group, "crontabs")
	p.Fail(err)
	if stored == nil {
		p.Say("The bytes in etcd are not shown: %s is not set.", EndpointVariable)
		return
	}
	p.Say("What etcd holds under /registry/%s/crontabs/: %s; for example", p.Group, stored)
	p.print("  %s", withoutManagedFields(stored.Bytes[Namespace+"/"+p.Name]))
	if !stored.Only(p.Group + "/" + version) {
		p.Fail(fmt.Errorf("etcd holds %s, want all at %s", stored, version))
	}
	p.Claim("every object is stored at %s: %s", version, stored)
}
