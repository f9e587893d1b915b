// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// fieldManager identifies changes of these commands in metadata.managedFields of a policy.
const fieldManager = "kubectl-conversion"

// edit is a change of one field of a policy's spec. Its JSON form is stable.
type edit struct {
	Policy string `json:"policy"`
	// Field is its path, and Value its new value.
	Field string `json:"field"`
	Value any    `json:"value"`
	// Changed reports whether it had another value before.
	Changed bool `json:"changed"`
	// Says are the consequences, one sentence each.
	Says []string `json:"says,omitempty"`
}

// decide returns the change of a policy, or an error if the policy must not change.
type decide func(policy *v1alpha1.ConversionPolicy) (*edit, error)

// operateOptions are the flags of the commands that change a policy.
type operateOptions struct {
	config *genericclioptions.ConfigFlags
	output output
	force  bool
}

func (o *operateOptions) addFlags(command *cobra.Command) {
	o.config = clusterFlags(command)
	o.output.add(command, formText, formJSON, formYAML)
	command.ValidArgsFunction = namesIn(o.config, policyKind)
	command.Flags().BoolVar(&o.force, "force-conflicts", false, "change the field even if another field manager applies it, which may revert the change")
}

// run changes each of the policies, and continues after an error.
func (o *operateOptions) run(command *cobra.Command, names []string, decide decide) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	api, err := connect(o.config)
	if err != nil {
		return err
	}
	var edits []*edit
	var errs []error
	for _, name := range names {
		edit, err := o.change(command.Context(), api, name, decide)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		edits = append(edits, edit)
	}
	if len(edits) > 0 {
		errs = append(errs, o.output.write(command.OutOrStdout(), edits, func(w io.Writer) error { return writeEdits(w, edits) }))
	}
	return errors.Join(errs...)
}

// change decides by the current policy, and writes only if the policy has not
// changed since. Otherwise it reads the policy again.
func (o *operateOptions) change(ctx context.Context, api client.Client, name string, decide decide) (*edit, error) {
	var change *edit
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		policy, err := getPolicy(ctx, api, name)
		if err != nil {
			return err
		}
		if change, err = decide(policy); err != nil || !change.Changed {
			return err
		}
		if err := o.mayWrite(policy, change); err != nil {
			return err
		}
		patch := client.RawPatch(types.MergePatchType, change.patch(policy.ResourceVersion))
		return api.Patch(ctx, policy, patch, client.FieldOwner(fieldManager))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return change, nil
}

// patch is a merge patch that the API server refuses if the policy has changed.
func (e *edit) patch(resourceVersion string) []byte {
	value := e.Value
	for _, name := range slices.Backward(strings.Split(e.Field, ".")) {
		value = map[string]any{name: value}
	}
	patch := value.(map[string]any)
	patch["metadata"] = map[string]any{"resourceVersion": resourceVersion}
	text, _ := json.Marshal(patch) // strings and booleans cannot fail
	return text
}

// mayWrite returns an error if another field manager applies the field server-side,
// as a GitOps tool does: it would revert the change. For a manifest that kubectl
// applied, which reverts the change with the next apply, it only warns.
func (o *operateOptions) mayWrite(policy *v1alpha1.ConversionPolicy, change *edit) error {
	for _, entry := range policy.ManagedFields {
		if entry.Manager == fieldManager || !owns(entry, change.Field) {
			continue
		}
		if entry.Operation == metav1.ManagedFieldsOperationApply && !o.force {
			return fmt.Errorf("%s is applied by the field manager %s, which may revert the change: change it there, or add --force-conflicts", change.Field, entry.Manager)
		}
		if entry.Operation == metav1.ManagedFieldsOperationApply || entry.Manager == "kubectl-client-side-apply" {
			change.Says = append(change.Says, fmt.Sprintf("the manifest that %s applied has another value: change %s there, too", entry.Manager, change.Field))
		}
	}
	return nil
}

// owns reports whether a field manager has the field.
func owns(entry metav1.ManagedFieldsEntry, field string) bool {
	owned, path := &fieldpath.Set{}, fieldpath.Path{}
	if entry.FieldsV1 == nil || owned.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
		return false
	}
	for name := range strings.SplitSeq(field, ".") {
		path = append(path, fieldpath.FieldNameElement(name))
	}
	return owned.Has(path)
}

func writeEdits(w io.Writer, edits []*edit) error {
	for _, edit := range edits {
		is := "is"
		if !edit.Changed {
			is = "was already"
		}
		lines := append([]string{fmt.Sprintf("%s: %s %s %v", edit.Policy, edit.Field, is, edit.Value)}, edit.Says...)
		if _, err := fmt.Fprintln(w, strings.Join(lines, "\n  ")); err != nil {
			return err
		}
	}
	return nil
}

// checkNotDeleted returns an error for a policy that is being deleted.
func checkNotDeleted(policy *v1alpha1.ConversionPolicy) error {
	if policy.DeletionTimestamp.IsZero() {
		return nil
	}
	return errors.New("the policy is being deleted: migrations neither start nor continue")
}
