// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/export"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// exportOptions are the flags of the export command.
type exportOptions struct {
	definitions  definitions
	output       output
	folder       string
	previous     string
	name         string
	namespace    string
	image        string
	certificates string
}

func newExportCommand() *cobra.Command {
	options := exportOptions{}
	command := &cobra.Command{
		Use:   "export [POLICY]",
		Short: "Write a converter that a chart ships, for clusters without the operator",
		Long: `Write a converter that a chart ships, for clusters without the operator: the pods that
the operator runs, with the compiled rules, a Service, a certificate, and
spec.conversion of the CustomResourceDefinition. The pods have no right to the API, and
follow changes of the rules and of the certificate.

The output is plain manifests, kustomizations, or a template for a chart, which takes
the namespace of the release. A Job checks that each pod serves the rules: the
CustomResourceDefinition must not name them before. In a chart, a hook runs it. Another
Job migrates stored objects. A policy that is created later takes over.

Exit codes:
  0  the files are written
  2  nothing is written: a flag is wrong, a file cannot be read, or the policy is not
     valid, or has no rules`,
		Example: `  conversion-operator export --policy policy.yaml --crd crd.yaml -o helm --folder chart/templates/conversion --image example.com/conversion-operator:v1
  conversion-operator export --policy policy.yaml --crd crd.yaml --folder export-1 --namespace crontabs --image example.com/conversion-operator:v1
  conversion-operator export --policy policy.yaml --crd crd.yaml --folder export-2 --previous export-1 --namespace crontabs --image example.com/conversion-operator:v1`,
	}
	options.output.add(command, export.Manifests, export.Kustomize, export.Helm)
	flags := command.Flags()
	options.definitions.addFlags(flags)
	flags.StringVar(&options.folder, "folder", "", "new or empty folder to write the files to")
	flags.StringVar(&options.previous, "previous", "", "folder of an earlier export, whose rules the pods continue to serve")
	flags.StringVar(&options.name, "name", "", "name of the Deployment and the Service; default that of the resource with -converter, for example crontabs-converter")
	flags.StringVar(&options.namespace, "namespace", "", "namespace of the converter; in a chart that of the release")
	flags.StringVar(&options.image, "image", "", "image of the operator, by the name that clusters pull it with")
	flags.StringVar(&options.certificates, "certificates", export.ByCertManager, "source of the serving certificate: cert-manager, or helm, with which a chart generates it once")
	complete(command, "certificates", export.ByCertManager, export.ByHelm)
	return forUsers(command, cobra.MaximumNArgs(1), options.run)
}

func (o *exportOptions) run(command *cobra.Command, args []string) error {
	if err := o.validate(); err != nil {
		return err
	}
	shipped, err := o.read(command.Context(), strings.Join(args, ""))
	if err != nil {
		return err
	}
	files, err := shipped.Files(o.output.form)
	if err != nil {
		return fmt.Errorf("%s: %w", shipped.CRD.Name, err)
	}
	if err := writeNew(o.folder, files); err != nil {
		return err
	}
	return o.explain(command.OutOrStdout(), shipped, slices.Sorted(maps.Keys(files)))
}

func (o *exportOptions) validate() error {
	if err := o.output.validate(); err != nil {
		return err
	}
	inChart := o.output.form == export.Helm
	switch {
	case o.folder == "":
		return errors.New("--folder is required: a new or empty folder for the files")
	case o.image == "":
		return errors.New("--image is required: the image of the operator, by the name that clusters pull it with")
	case strings.ContainsAny(o.image, " \t\n\"\\"):
		return fmt.Errorf("--image %q is no name of an image", o.image)
	case inChart && o.namespace != "":
		return errors.New("--namespace is that of the release in a chart: leave it out")
	case inChart && o.previous != "":
		return errors.New("--previous is for manifests: a chart finds the previous rules in the cluster")
	case !inChart && o.namespace == "":
		return errors.New("--namespace is required: it is in the certificate and in spec.conversion")
	case !slices.Contains([]string{export.ByCertManager, export.ByHelm}, o.certificates):
		return fmt.Errorf("--certificates must be %s or %s, is %q", export.ByCertManager, export.ByHelm, o.certificates)
	case !inChart && o.certificates == export.ByHelm:
		return errors.New("--certificates=helm needs --output=helm: manifests would have a private key")
	}
	if problems := validation.IsDNS1123Label(o.namespace); !inChart && len(problems) > 0 {
		return fmt.Errorf("--namespace %q is no name of a namespace: %s", o.namespace, problems[0])
	}
	return isNew(o.folder)
}

// read compiles the rules.
func (o *exportOptions) read(ctx context.Context, name string) (shipped export.Converter, err error) {
	policy, crd, err := o.definitions.read(ctx, name, nil)
	if err != nil {
		return shipped, err
	}
	if policy.Spec.Converter.Type != v1alpha1.ConverterDeclarative {
		return shipped, fmt.Errorf("%s has a converter of the type %s: only rules, of the type %s, can be exported", policy.Name, policy.Spec.Converter.Type, v1alpha1.ConverterDeclarative)
	}
	result, found := verify.Compile(policy, crd)
	for _, missing := range result.Missing {
		if missing := (verify.RuleError{Path: missing.Field, Message: missing.ErrorBody()}); !slices.Contains(found, missing) {
			found = append(found, missing)
		}
	}
	if len(found) > 0 {
		return shipped, fmt.Errorf("the rules of %s are not valid:\n%s", policy.Name, listOf(found))
	}
	shipped = export.Converter{CRD: crd, Pods: policy.Spec.Pods(), Ruleset: result.Ruleset, Name: cmp.Or(o.name, crd.Spec.Names.Plural+"-converter"), Namespace: o.namespace, Image: o.image, Certificates: o.certificates}
	if problems := validation.IsDNS1035Label(shipped.Name); len(problems) > 0 || len(shipped.Name) > export.MaxName {
		return shipped, fmt.Errorf("--name must be the name of a Service of at most %d characters, is %q", export.MaxName, shipped.Name)
	}
	if o.previous != "" {
		if shipped.Previous, err = previousIn(o.previous); err != nil {
			return shipped, fmt.Errorf("--previous: %w", err)
		}
	}
	return shipped, nil
}

// previousIn returns the ruleset that the CustomResourceDefinition of an earlier export names, and not those before it.
func previousIn(folder string) (map[string][]byte, error) {
	objects, err := readObjects([]string{folder}, nil)
	if err != nil {
		return nil, err
	}
	all, named := map[string][]byte{}, map[string][]byte{}
	var crd apiextensionsv1.CustomResourceDefinition
	for _, object := range objects {
		var into any = &struct{ BinaryData *map[string][]byte }{&all}
		if object.Kind == "CustomResourceDefinition" {
			into = &crd
		}
		if err := json.Unmarshal(object.JSON, into); err != nil {
			return nil, fmt.Errorf("%s: %w", object, err)
		}
	}
	for name, stored := range all {
		hash, is := conversion.StoredHash(name)
		if service := observed.WebhookService(&crd); !is || service == nil || service.Path == nil || *service.Path != converter.ConvertPath+"/"+hash {
			continue
		}
		if _, err := conversion.LoadStored(hash, stored); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", folder, name, err)
		}
		named[name] = stored
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("%s has no CustomResourceDefinition with its ruleset: name the folder of an earlier export", folder)
	}
	return named, nil
}

// isNew returns an error for a folder that has files.
func isNew(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--folder: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("--folder %s is not empty: name a new folder", folder)
	}
	return nil
}

// writeNew writes files into a folder.
func writeNew(folder string, files map[string]string) error {
	for name, text := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // manifests are no secrets
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // manifests are no secrets
			return err
		}
	}
	return nil
}

// explain says what was written, and in which order to apply it.
func (o *exportOptions) explain(to io.Writer, shipped export.Converter, files []string) error {
	says := []string{fmt.Sprintf("%s between %s, ruleset %s", shipped.CRD.Name, strings.Join(shipped.Ruleset.Versions, ", "), shipped.Ruleset.Hash())}
	for _, file := range files {
		says = append(says, "wrote "+filepath.Join(o.folder, filepath.FromSlash(file)))
	}
	wait := fmt.Sprintf("  kubectl wait -n %s job/%s --for=condition=Complete --timeout=10m", shipped.Namespace, shipped.CheckJob())
	switch o.output.form {
	case export.Helm:
		says = append(says, "Add the file to the templates of a chart, instead of the CustomResourceDefinition. The first upgrade with it may not change the storage version.")
	case export.Kustomize:
		says = append(says, "Apply in this order:", "  kubectl apply -k "+o.folder+"/converter", wait, "  a kustomization of the CustomResourceDefinition with the component "+o.folder+"/conversion")
	default:
		says = append(says, "Apply in this order:", "  kubectl apply -f "+o.folder+"/converter.yaml", wait, "  kubectl apply -f "+o.folder+"/crd.yaml")
	}
	_, err := fmt.Fprintln(to, strings.Join(says, "\n"))
	return err
}
