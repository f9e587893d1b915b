// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

// definitions are the flags for the rules and the schemas.
type definitions struct {
	policy string
	crd    string
}

func (d *definitions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&d.policy, "policy", "", "file of the ConversionPolicy; other documents in it are ignored")
	flags.StringVar(&d.crd, "crd", "", "file of the CustomResourceDefinition; other documents in it are ignored")
}

// read finds the policy of the name, or the only one, and its
// CustomResourceDefinition. Without a cluster, both must be in files.
func (d *definitions) read(ctx context.Context, name string, from *live.Cluster) (*v1alpha1.ConversionPolicy, *apiextensionsv1.CustomResourceDefinition, error) {
	if err := d.validate(name, from != nil); err != nil {
		return nil, nil, err
	}
	var all, known []manifest.Object
	var err error
	file := d.definitionFile(from)
	if file != "" {
		if all, err = objectsIn(file); err != nil {
			return nil, nil, err
		}
		if known, err = ofKind(file, all, apiextensionsv1.GroupName, "CustomResourceDefinition"); err != nil {
			if d.crd == "" {
				err = fmt.Errorf("--crd is required, the file of the CustomResourceDefinition: %w", err)
			}
			return nil, nil, err
		}
	}
	if d.policy != file && d.policy != "" {
		if all, err = objectsIn(d.policy); err != nil {
			return nil, nil, err
		}
	}
	policy, err := d.readPolicy(ctx, name, all, known, from)
	if err != nil {
		return nil, nil, err
	}
	if file == "" {
		crd, err := from.Definition(ctx, policy.Name)
		return policy, crd, err
	}
	object, err := named(file, known, policy.Name)
	if err != nil {
		return nil, nil, err
	}
	crd, err := verify.ReadDefinition(object)
	return policy, crd, err
}

// clusterFor returns the cluster of definitions that are not in files, nil if both are in files.
func (d *definitions) clusterFor(config *genericclioptions.ConfigFlags) (*live.Cluster, error) {
	if d.policy != "" && d.crd != "" {
		return nil, nil //nolint:nilnil // No cluster is needed then, and there is no error.
	}
	return connectToRead(config)
}

// definitionFile returns the file of the CustomResourceDefinition, empty for that of the cluster. An
// archive of a policy has both.
func (d *definitions) definitionFile(from *live.Cluster) string {
	if d.crd == "" && from == nil {
		return d.policy
	}
	return d.crd
}

func (d *definitions) validate(name string, inCluster bool) error {
	switch {
	case !inCluster && d.policy == "":
		return errors.New("--policy is required: the file of the ConversionPolicy")
	case d.policy == "" && name == "":
		return errors.New("which policy? Name it as the argument, for example crontabs.example.com, or pass a file with --policy")
	}
	return nil
}

// readPolicy finds the policy in the objects of its file, or in the cluster.
func (d *definitions) readPolicy(ctx context.Context, name string, all, crds []manifest.Object, from *live.Cluster) (*v1alpha1.ConversionPolicy, error) {
	if d.policy == "" {
		return from.Policy(ctx, name)
	}
	policies, err := ofKind(d.policy, all, v1alpha1.GroupVersion.Group, "ConversionPolicy")
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name, err = d.nameOf(policies, crds); err != nil {
			return nil, err
		}
	}
	policy, err := named(d.policy, policies, name)
	if err != nil {
		return nil, err
	}
	return policyOf(ctx, policy)
}

// nameOf returns the name of the only policy, or of the only one whose CustomResourceDefinition was passed.
func (d *definitions) nameOf(policies, crds []manifest.Object) (string, error) {
	names := namesOf(policies)
	slices.Sort(names)
	names = slices.Compact(names)
	fitting := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(namesOf(crds), name) })
	switch {
	case len(names) == 1:
		return names[0], nil
	case len(fitting) == 1:
		return fitting[0], nil
	case len(fitting) > 1:
		names = fitting
	}
	return "", fmt.Errorf("which ConversionPolicy of %s? Name one as the argument: %s", d.policy, strings.Join(names, ", "))
}

// objectsIn returns the objects in a file, which may be a pipe: it can be read only once.
func objectsIn(file string) ([]manifest.Object, error) {
	if file == manifest.Stdin {
		return nil, errors.New("a ConversionPolicy or CustomResourceDefinition cannot come from stdin: pass a file")
	}
	return readObjects([]string{file}, nil)
}

// readObjects returns the objects in files, also those in lists.
func readObjects(files []string, stdin io.Reader) ([]manifest.Object, error) {
	documents, err := manifest.ReadAll(files, stdin)
	if err != nil {
		return nil, err
	}
	var found []manifest.Object
	for _, document := range documents {
		objects, err := document.Objects()
		if err != nil {
			return nil, err
		}
		found = append(found, objects...)
	}
	return found, nil
}

// ofKind returns the objects of one kind among those in a file.
func ofKind(file string, objects []manifest.Object, group, kind string) ([]manifest.Object, error) {
	var found []manifest.Object
	for _, object := range objects {
		if isOfGroup(object, group, kind) {
			found = append(found, object)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no %s, of the group %s", file, kind, group)
	}
	return found, nil
}

// isOfGroup reports whether an object is of a kind of a group: other groups may have a kind of the same name.
func isOfGroup(object manifest.Object, group, kind string) bool {
	return object.Kind == kind && strings.HasPrefix(object.APIVersion, group+"/")
}

func named(file string, objects []manifest.Object, name string) (manifest.Object, error) {
	found := slices.DeleteFunc(slices.Clone(objects), func(object manifest.Object) bool { return object.Name != name })
	switch len(found) {
	case 0:
		return manifest.Object{}, fmt.Errorf("%s has no %s %s, only: %s", file, objects[0].Kind, name, strings.Join(namesOf(objects), ", "))
	case 1:
		return found[0], nil
	}
	return manifest.Object{}, fmt.Errorf("%s has the %s %s more than once: keep one of them", file, objects[0].Kind, name)
}

func namesOf(objects []manifest.Object) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.Name)
	}
	return names
}

func policyOf(ctx context.Context, object manifest.Object) (*v1alpha1.ConversionPolicy, error) {
	policy, found, err := verify.ReadPolicy(ctx, object.JSON)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", object, err)
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("%s: the ConversionPolicy is not valid:\n%s", object, listOf(found))
	}
	return policy, nil
}

// compile reads the policy and its CustomResourceDefinition, and compiles the rules. The error lists all that is
// wrong with them.
func (d *definitions) compile(ctx context.Context, name string, from *live.Cluster) (*v1alpha1.ConversionPolicy, *apiextensionsv1.CustomResourceDefinition, compile.Result, error) {
	policy, crd, err := d.read(ctx, name, from)
	if err != nil {
		return nil, nil, compile.Result{}, err
	}
	result, found := verify.Compile(policy, crd)
	if len(found) > 0 {
		return nil, nil, compile.Result{}, fmt.Errorf("the rules of %s are not valid:\n%s", policy.Name, listOf(found))
	}
	return policy, crd, result, nil
}

// listOf returns a line for each error.
func listOf(found []verify.RuleError) string {
	var lines []string
	for _, err := range found {
		lines = append(lines, "  "+err.Path+": "+err.Message)
	}
	return strings.Join(lines, "\n")
}

// written returns a definition in YAML as a user would write it: with only the name, labels and annotations in its
// metadata, and without a status.
func written(object client.Object) (string, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	var members struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(text, &members); err != nil {
		return "", err
	}
	kind, err := apiutil.GVKForObject(object, scheme.New())
	if err != nil {
		return "", err
	}
	annotations := object.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	text, err = json.Marshal(struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   metav1.ObjectMeta `json:"metadata"`
		Spec       json.RawMessage   `json:"spec"`
	}{kind.GroupVersion().String(), kind.Kind, metav1.ObjectMeta{Name: object.GetName(), Labels: object.GetLabels(), Annotations: annotations}, members.Spec})
	if err != nil {
		return "", err
	}
	return manifest.Encode(text)
}
