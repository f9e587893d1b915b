// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	awsv1beta1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1beta1"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
)

// TestNodePool: Karpenter's v1.
func TestNodePool(t *testing.T) {
	ctx := injection.WithNodeClasses(t.Context(), []schema.GroupVersionKind{{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"}})
	const never = "their Go type writes Never for a time that is not there, as when there is no .spec.disruption; ours writes nothing"
	p := kind[v1beta1.NodePool, v1.NodePool]("karpenter-nodepools", "sigs.k8s.io/karpenter", "pkg/apis/crds/karpenter.sh_nodepools.yaml")
	p.own = knative[*v1.NodePool](ctx)
	p.keeps = []string{v1.KubeletCompatibilityAnnotationKey, v1.NodeClassReferenceAnnotationKey}
	p.differences = []difference{
		{"v1beta1", ".spec.disruption.consolidateAfter", func(theirs, ours any) bool { return theirs == "Never" && ours == absent }, never},
	}
	p.examples = map[string][]any{
		quantity: quantities,
		".spec.template.spec.nodeClassRef.apiVersion":            {"karpenter.k8s.aws/v1beta1", "karpenter.k8s.aws/v1", "karpenter.azure.com/v1alpha2", "", "odd"},
		"v1:.spec.template.spec.nodeClassRef.group":              {"karpenter.k8s.aws"}, // their functions know one provider
		"v1:.spec.template.spec.nodeClassRef.kind":               {"EC2NodeClass"},
		".spec.disruption.budgets[*].duration":                   {"10m", "1h", "1h30m0s"},
		".spec.disruption.consolidateAfter":                      {"Never", "0s", "30s", "1h"},
		".spec.disruption.expireAfter":                           {"Never", "720h", "30m"},
		".spec.template.spec.expireAfter":                        {"Never", "720h", "30m"},
		".spec.template.spec.terminationGracePeriod":             {"30m"},
		".spec.template.spec.kubelet.evictionSoftGracePeriod[*]": {"30m"},
	}
	p.check(t)
}

// TestNodeClaim: Karpenter's v1.
func TestNodeClaim(t *testing.T) {
	// Their functions want a client, and use it for an object with the label of a NodePool.
	ctx := injection.WithClient(t.Context(), struct{ client.Client }{})
	ctx = injection.WithNodeClasses(ctx, []schema.GroupVersionKind{{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"}})
	p := kind[v1beta1.NodeClaim, v1.NodeClaim]("karpenter-nodeclaims", "sigs.k8s.io/karpenter", "pkg/apis/crds/karpenter.sh_nodeclaims.yaml")
	p.own = knative[*v1.NodeClaim](ctx)
	p.keeps = []string{v1.KubeletCompatibilityAnnotationKey, v1.NodeClassReferenceAnnotationKey}
	p.examples = map[string][]any{
		quantity:                                   quantities,
		"v1:.spec.nodeClassRef.group":              {"karpenter.k8s.aws"}, // their functions know one provider
		"v1:.spec.nodeClassRef.kind":               {"EC2NodeClass"},
		".spec.nodeClassRef.apiVersion":            {"karpenter.k8s.aws/v1beta1", "karpenter.k8s.aws/v1", "karpenter.azure.com/v1alpha2", "", "odd"},
		".spec.expireAfter":                        {"Never", "720h", "30m"},
		".spec.terminationGracePeriod":             {"30m"},
		".spec.kubelet.evictionSoftGracePeriod[*]": {"30m"},
	}
	p.check(t)
}

// TestEC2NodeClass: Karpenter's v1 on AWS.
func TestEC2NodeClass(t *testing.T) {
	const (
		disk = "theirs writes the default disk of Ubuntu; ours preserves the family, and leaves the disk out"
		none = "theirs writes empty lists and the family Custom for an object without a spec; ours writes nothing"
	)
	isNone := func(theirs, ours any) bool {
		return (show(theirs) == "[]" || theirs == "Custom") && (ours == nil || ours == absent)
	}
	p := kind[awsv1beta1.EC2NodeClass, awsv1.EC2NodeClass]("karpenter-ec2nodeclasses", "github.com/aws/karpenter-provider-aws", "pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml")
	p.own = knative[*awsv1.EC2NodeClass](t.Context())
	p.differences = []difference{
		{"v1", ".spec.blockDeviceMappings", onlyTheirs, disk},
		{"v1", "**", isNone, none},
		{"v1beta1", "**", isNone, none},
	}
	p.keeps = []string{awsv1.AnnotationUbuntuCompatibilityKey, awsv1.AnnotationAliasVersionCompatibilityKey}
	p.examples = map[string][]any{
		quantity: quantities,
		".spec.kubelet.evictionSoftGracePeriod[*]": {"30m"},
		".spec.amiSelectorTerms": {
			[]any{map[string]any{"id": "ami-1"}},
			[]any{map[string]any{"name": "my-image", "owner": "self"}, map[string]any{"tags": map[string]any{"team": "one"}}},
		},
		"v1:.spec.amiSelectorTerms": {
			[]any{map[string]any{"alias": "al2023@latest"}},
			[]any{map[string]any{"alias": "bottlerocket@v1.20.0"}},
			[]any{map[string]any{"id": "ami-1"}},
		},
		".spec.blockDeviceMappings[*].ebs.volumeSize": {"20Gi"},
	}
	p.check(t)
}
