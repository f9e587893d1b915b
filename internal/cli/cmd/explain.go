// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/internal/cli/explain"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

// explainOptions are the flags of the explain command.
type explainOptions struct {
	config      *genericclioptions.ConfigFlags
	definitions definitions
	output      output
	files       []string
	from, to    string
	field       string
	all         bool
}

func newExplainCommand() *cobra.Command {
	options := explainOptions{}
	command := &cobra.Command{
		Use:   "explain (TYPE/NAME | TYPE NAME | -f FILE [POLICY])",
		Short: "Explain which rule made each field of an object at another version",
		Long: `Explain how an object becomes one of another version: for each field of that
version, the fields and the rule that made it, or that it was preserved and came
back; and for each value that the annotation preserves, the reason.

The object comes from a cluster, which the command only reads, or from files (-f),
in which objects of other kinds are ignored. If files have no policy or
CustomResourceDefinition, the command reads those of the cluster. It reads an object
of the cluster at its storage version, or at --from.

VERDICT says where the value is while the object is at the other version: in a
field (Exact), in the annotation (Preserved), or nowhere (Dropped).

Exit codes:
  0  the object was explained
  1  the object cannot be converted
  2  the explanation could not run: a flag is wrong, a file or the cluster cannot
     be read, or the policy is not valid`,
		Example: `  conversion-operator explain crontab/local --to v1
  conversion-operator explain crontabs.example.com local -n team-a --field host -o wide
  conversion-operator explain -f objects.yaml --policy policy.yaml --crd crd.yaml --to v1`,
	}
	options.addFlags(command)
	return forUsers(command, cobra.MaximumNArgs(2), options.run)
}

func (o *explainOptions) addFlags(command *cobra.Command) {
	o.config = namespacedFlags(command, "namespace of the object; default that of the context")
	o.output.add(command, formTable, formWide, formJSON, formYAML)
	flags := command.Flags()
	o.definitions.addFlags(flags)
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file or directory of objects, - for stdin; can be given several times")
	flags.StringVar(&o.to, "to", "", "version to convert to; default every other version")
	flags.StringVar(&o.from, "from", "", "version to read an object of the cluster at; default the storage version")
	flags.StringVar(&o.field, "field", "", "explain this field only, and what is above and below it, for example spec.host")
	flags.BoolVar(&o.all, "all", false, "also explain fields of the version that the object does not have")
	command.ValidArgsFunction = namesIn(o.config, policyKind)
}

func (o *explainOptions) validate(args []string) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	switch {
	case len(o.files) > 0 && len(args) > 1:
		return errors.New("name an object of the cluster, or pass files with -f: with files, the argument is the name of a policy")
	case len(o.files) > 0 && o.from != "":
		return errors.New("--from is the version at which to read an object of the cluster: an object of a file has its own version")
	case len(o.files) == 0 && len(args) == 0:
		return errors.New("which object? Name it as TYPE/NAME, for example crontab/local, or pass files with -f")
	case len(o.files) == 0 && len(args) == 1 && strings.Count(args[0], "/") != 1:
		return fmt.Errorf("%q is not an object: name it as TYPE/NAME, for example crontab/local", args[0])
	}
	return nil
}

func (o *explainOptions) run(command *cobra.Command, args []string) error {
	if err := o.validate(args); err != nil {
		return err
	}
	ctx := command.Context()
	connect := o.definitions.clusterFor
	if len(o.files) == 0 {
		connect = connectToRead
	}
	connected, err := connect(o.config)
	if err != nil {
		return err
	}
	var name string
	var objects []manifest.Object
	if len(o.files) > 0 {
		name = strings.Join(args, "")
		objects, err = readObjects(o.files, stdinOf(command))
	} else {
		name, objects, err = o.inCluster(ctx, connected, strings.Split(strings.Join(args, "/"), "/"))
	}
	if err != nil {
		return err
	}
	explainer, ruleset, err := o.explainer(ctx, name, connected)
	if err != nil {
		return err
	}
	explained, err := ofKind(sourcesOf(o.files), objects, ruleset.Group, ruleset.Kind)
	if err != nil {
		return err
	}
	report, err := o.explain(explainer, ruleset, explained)
	if err != nil {
		return err
	}
	if others := len(objects) - len(explained); others > 0 {
		fmt.Fprintf(command.ErrOrStderr(), "objects of other kinds, ignored: %d\n", others)
	}
	stdout := command.OutOrStdout()
	return o.output.write(stdout, report, func(w io.Writer) error {
		return report.WriteTables(w, explain.Table{Wide: o.output.form == formWide, Colors: colorsOf(stdout)})
	})
}

// inCluster reads one object, and returns the name of its CustomResourceDefinition.
func (o *explainOptions) inCluster(ctx context.Context, connected *live.Cluster, typeAndName []string) (string, []manifest.Object, error) {
	mapper, err := o.config.ToRESTMapper()
	if err != nil {
		return "", nil, err
	}
	resource, err := mapper.ResourceFor(schema.ParseGroupResource(typeAndName[0]).WithVersion(""))
	if meta.IsNoMatchError(err) {
		return "", nil, fmt.Errorf("the cluster has no resource %s", typeAndName[0])
	}
	if err != nil {
		return "", nil, err
	}
	crd, err := connected.Definition(ctx, resource.GroupResource().String())
	if err != nil {
		return "", nil, err
	}
	object, err := o.object(ctx, connected, crd, typeAndName[1])
	return crd.Name, []manifest.Object{object}, err
}

// object reads an object of a kind at the requested version.
func (o *explainOptions) object(
	ctx context.Context, connected *live.Cluster, crd *apiextensionsv1.CustomResourceDefinition, name string,
) (object manifest.Object, err error) {
	version, err := o.versionToRead(crd)
	if err != nil {
		return object, err
	}
	namespace := ""
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		if namespace, _, err = o.config.ToRawKubeConfigLoader().Namespace(); err != nil {
			return object, err
		}
	}
	object, there, err := connected.Object(ctx, crds.Resource(crd, version), namespace, name)
	switch {
	case err != nil:
		return object, fmt.Errorf("read %s %s at version %s: %w", crd.Name, name, version, err)
	case !there:
		return object, fmt.Errorf("the cluster has no %s %s: is it in another --namespace?", crd.Name, name)
	}
	return object, nil
}

func (o *explainOptions) versionToRead(crd *apiextensionsv1.CustomResourceDefinition) (string, error) {
	if o.from == "" {
		version, _, err := live.VersionToRead(crd)
		return version, err
	}
	if served := crds.ServedVersions(crd); !slices.Contains(served, o.from) {
		return "", fmt.Errorf("--from must be a served version, one of %s, is %q", strings.Join(served, ", "), o.from)
	}
	return o.from, nil
}

// explainer compiles the rules, from files or the cluster.
func (o *explainOptions) explainer(ctx context.Context, name string, connected *live.Cluster) (*explain.Explainer, *conversion.Ruleset, error) {
	policy, _, result, err := o.definitions.compile(ctx, name, connected)
	if err != nil {
		return nil, nil, err
	}
	explainer, err := explain.New(policy, result)
	if err != nil {
		return nil, nil, err
	}
	if versions := result.Ruleset.Versions; o.to != "" && !slices.Contains(versions, o.to) {
		return nil, nil, fmt.Errorf("--to must be one of %s, is %q", strings.Join(versions, ", "), o.to)
	}
	return explainer, result.Ruleset, nil
}

// explain explains each object at each requested version.
func (o *explainOptions) explain(explainer *explain.Explainer, ruleset *conversion.Ruleset, objects []manifest.Object) (*explain.Report, error) {
	report := explainer.Report()
	for _, object := range objects {
		_, own, _ := strings.Cut(object.APIVersion, "/")
		for _, version := range ruleset.Versions {
			if version == own || o.to != "" && version != o.to {
				continue
			}
			explained, err := explainer.Object(object.String(), object.JSON, version, o.all)
			if err != nil {
				return nil, &exitError{exitFound, err}
			}
			report.Objects = append(report.Objects, explained)
		}
	}
	if len(report.Objects) == 0 {
		return nil, fmt.Errorf("nothing to convert: every object is already at %s", o.to)
	}
	if o.field != "" && !report.Only(o.field) {
		return nil, fmt.Errorf("no object has a value at %s: --all explains fields that objects do not have", o.field)
	}
	return report, nil
}
