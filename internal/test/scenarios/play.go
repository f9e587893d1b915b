// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
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
	if err := p.before(ctx); err != nil {
		return err
	}
	client := p.Read(ctx, p.At(p.Old), p.OnlyOldName, func(object *unstructured.Unstructured) error {
		return p.expect(object, p.OnlyOld)
	})
	for _, chapter := range []func(context.Context) error{p.policyFirst, p.newVersion, p.bothVersions, p.storageMoves} {
		if err := chapter(ctx); err != nil {
			_, readErr := client.Stop()
			return fmt.Errorf("%w (the client that reads all the while: %v)", err, readErr) //nolint:errorlint // for people
		}
	}
	reads, err := client.Stop()
	if err != nil {
		return fmt.Errorf("a client that read at %s all the while was interrupted: %w", p.Old, err)
	}
	p.Claim("a client read an object at %s all the while: %d reads, none failed or differed", p.Old, reads)
	return nil
}

func (p *Play) file(name string) string { return filepath.Join(p.Samples, name) }

func (p *Play) policy() string { return "conversionpolicy/" + p.CRD() }

func (p *Play) before(ctx context.Context) error {
	p.Chapter("One version, and " + fmt.Sprint(p.Count) + " objects more than the samples")
	if _, err := p.Show(ctx, "kubectl", "apply", "-f", p.file(p.CRDBefore)); err != nil {
		return err
	}
	if _, err := p.Run(ctx, "sh", "-c", docs.Established("crd/"+p.CRD())); err != nil {
		return err
	}
	if _, err := p.Show(ctx, "kubectl", "apply", "-f", p.file(p.Objects)); err != nil {
		return err
	}
	if err := p.Create(ctx, p.At(p.Old), p.Count, p.Object); err != nil {
		return err
	}
	p.Say("%d more objects were created.", p.Count)
	return p.showStored(ctx, p.Old)
}

func (p *Play) policyFirst(ctx context.Context) error {
	p.Chapter("The policy first: the converter is there before anyone can ask for a conversion")
	if _, err := p.Show(ctx, "cat", p.file(p.Policy)); err != nil {
		return err
	}
	if _, err := p.Show(ctx, "kubectl", "apply", "-f", p.file(p.Policy)); err != nil {
		return err
	}
	if _, err := p.Show(ctx, "kubectl", "wait", "--for=condition=Ready", p.policy(), patience); err != nil {
		return err
	}
	if err := p.showPolicy(ctx); err != nil {
		return err
	}
	return p.showConditions(ctx)
}

func (p *Play) newVersion(ctx context.Context) error {
	p.Chapter("Then the CustomResourceDefinition gets its new version " + p.New + ", served, not stored")
	if _, err := p.Show(ctx, "kubectl", "apply", "-f", p.file(p.CRDBoth)); err != nil {
		return err
	}
	for _, condition := range []string{"RulesValid", "Ready"} {
		if _, err := p.Show(ctx, "kubectl", "wait", "--for=condition="+condition, p.policy(), patience); err != nil {
			return err
		}
	}
	return p.showConditions(ctx)
}

func (p *Play) bothVersions(ctx context.Context) error {
	p.Chapter("The same object at both versions")
	if err := p.showObject(ctx, p.Old, p.Name, Field{p.OldPath, p.OldValue}); err != nil {
		return err
	}
	if err := p.showObject(ctx, p.New, p.Name, p.NewFields...); err != nil {
		return err
	}
	p.Claim("%s at %s is the same object at %s", p.Name, p.Old, p.New)

	p.Chapter("An edit through the old version")
	if err := p.patch(ctx, p.Old, p.Name, p.Edit); err != nil {
		return err
	}
	if err := p.showObject(ctx, p.New, p.Name, p.EditedFields...); err != nil {
		return err
	}
	p.Claim("the edit through %s arrived at %s", p.Old, p.New)

	if err := p.oneSidedFields(ctx); err != nil {
		return err
	}
	return p.oddValue(ctx)
}

// oneSidedFields sets a field that only the new version has, edits the object through the old
// version, and verifies that the field is still set.
func (p *Play) oneSidedFields(ctx context.Context) error {
	p.Chapter("Fields that only one version has")
	if err := p.patch(ctx, p.New, p.Name, p.OnlyNewPatch); err != nil {
		return err
	}
	if err := p.patch(ctx, p.Old, p.Name, `{"metadata":{"labels":{"edited-through":"`+p.Old+`"}}}`); err != nil {
		return err
	}
	if err := p.showObject(ctx, p.New, p.Name, append(p.EditedFields, p.OnlyNew)...); err != nil {
		return err
	}
	p.Claim("%s exists in %s only, and survived an edit through %s", path(p.OnlyNew), p.New, p.Old)
	if err := p.patch(ctx, p.New, p.OnlyOldName, `{"metadata":{"labels":{"edited-through":"`+p.New+`"}}}`); err != nil {
		return err
	}
	if err := p.showObject(ctx, p.Old, p.OnlyOldName, p.OnlyOld); err != nil {
		return err
	}
	p.Claim("%s exists in %s only, and survived an edit through %s", path(p.OnlyOld), p.Old, p.New)
	return nil
}

func (p *Play) oddValue(ctx context.Context) error {
	p.Chapter("A value that the rule cannot split")
	object, err := p.Get(ctx, p.At(p.New), p.OddName)
	if err != nil {
		return err
	}
	for _, field := range p.NewFields {
		if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, field.Path...); found {
			return fmt.Errorf("%s at %s has %s, which cannot be known", p.OddName, p.New, path(field))
		}
	}
	if err := p.showObject(ctx, p.Old, p.OddName, Field{p.OldPath, p.OddValue}); err != nil {
		return err
	}
	p.Claim("%s is readable at both versions, and its %q is kept", p.OddName, p.OddValue)
	return nil
}

func (p *Play) storageMoves(ctx context.Context) error {
	p.Chapter("Then the storage version moves, and stored objects are migrated")
	if err := p.showStoredVersions(ctx, "before"); err != nil {
		return err
	}
	if _, err := p.Show(ctx, "kubectl", "apply", "-f", p.file(p.CRDStorage)); err != nil {
		return err
	}
	if err := p.followMigration(ctx); err != nil {
		return err
	}
	if _, err := p.Show(ctx, "kubectl", "wait", "--for=condition=Ready", p.policy(), patience); err != nil {
		return err
	}
	if err := p.showPolicy(ctx); err != nil {
		return err
	}
	if err := p.showStoredVersions(ctx, "after", p.New); err != nil {
		return err
	}
	if err := p.showStored(ctx, p.New); err != nil {
		return err
	}
	return p.nothingLost(ctx)
}

// nothingLost reads every object at the old version, at which it was created.
func (p *Play) nothingLost(ctx context.Context) error {
	items, err := p.List(ctx, p.At(p.Old))
	if err != nil {
		return err
	}
	values := map[string]any{}
	for _, item := range items {
		values[item.GetName()], _, _ = unstructured.NestedFieldNoCopy(item.Object, p.OldPath...)
	}
	for i := range p.Count {
		want := p.Object(i)
		value, _, _ := unstructured.NestedFieldNoCopy(want.Object, p.OldPath...)
		if values[want.GetName()] != value {
			return fmt.Errorf("%s at %s has %v, and was created with %v", want.GetName(), p.Old, values[want.GetName()], value)
		}
	}
	p.Claim("all %d created objects read at %s as they were created there, now from bytes at %s", p.Count, p.Old, p.New)
	return nil
}

func (p *Play) patch(ctx context.Context, version, name, patch string) error {
	_, err := p.Show(ctx, "kubectl", "patch", p.Resource(version), name, "--type=merge", "-p", patch)
	return err
}

// showObject prints an object, and checks some of its fields.
func (p *Play) showObject(ctx context.Context, version, name string, fields ...Field) error {
	if _, err := p.Show(ctx, "kubectl", "get", p.Resource(version), name); err != nil {
		return err
	}
	object, err := p.Get(ctx, p.At(version), name)
	if err != nil {
		return err
	}
	return p.expect(object, fields...)
}

func (p *Play) expect(object *unstructured.Unstructured, fields ...Field) error {
	for _, field := range fields {
		value, _, err := unstructured.NestedFieldNoCopy(object.Object, field.Path...)
		if err != nil || !reflect.DeepEqual(value, field.Value) {
			return fmt.Errorf("%s at %s: %s is %#v, want %#v", object.GetName(), object.GetAPIVersion(), path(field), value, field.Value)
		}
	}
	return nil
}

func path(field Field) string { return "." + strings.Join(field.Path, ".") }

// pollPause is the time between two reads of a migration's progress.
const pollPause = 200 * time.Millisecond
